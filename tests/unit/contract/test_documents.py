"""What leads from a document's id to the pod that has it."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_contract.routing import TAG_DIGITS, new_document_id, replica_tag, tag_of
from dragoman_protocols.files import FILE_ENDINGS
from dragoman_service.files.kinds import READERS

TAGS = st.binary(min_size=TAG_DIGITS // 2, max_size=TAG_DIGITS // 2).map(bytes.hex)


@given(TAGS)
def test_an_id_leads_back_to_its_tag_in_every_shape(tag: str) -> None:
    made = new_document_id(tag)
    assert made.version == 8
    assert tag_of(str(made)) == tag_of(made.hex) == tag_of(made.hex.upper()) == tag
    assert new_document_id(tag) != made


@pytest.mark.parametrize(
    "tag", [None, "", "0123456789a", "0123456789abc", "0123456789AB", "x" * 12, "a" * 12 + "\n"]
)
def test_what_is_no_tag_makes_a_random_id(tag: str | None) -> None:
    assert new_document_id(tag).version == 4


@given(st.text(), st.text())
def test_a_tag_has_twelve_digits_and_goes_by_the_uid_where_there_is_one(uid: str, address: str) -> None:
    tag = replica_tag(uid, address)
    assert re.fullmatch(r"[0-9a-f]{12}", tag)
    assert tag == (replica_tag(uid, "another:1") if uid else replica_tag(address, ""))


@given(st.text())
def test_any_id_has_a_tag(document_id: str) -> None:
    assert len(tag_of(document_id)) <= 2 * TAG_DIGITS


def test_routers_tell_of_the_files_that_pods_read() -> None:
    assert tuple(READERS) == FILE_ENDINGS
