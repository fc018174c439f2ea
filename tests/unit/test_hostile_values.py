import itertools
import json
import random

import pytest
from tests.support.hostile.fields import FIELDS, draws
from tests.support.hostile.values import KINDS

from dragoman_protocols.routes import ENDPOINTS


@pytest.mark.parametrize("kind", KINDS)
def test_a_value_has_about_the_given_size_and_is_the_same_each_time(kind: str) -> None:
    make = KINDS[kind]

    assert len(make(4000).text) <= 2 * 4000
    assert make(4000) == make(4000)
    assert make(0).bytes is not None
    if kind not in ("json true", "json null"):
        assert 1.5 < len(make(4000).text) / len(make(2000).text) < 2.6


@pytest.mark.slow
def test_every_field_takes_every_value() -> None:
    names = [(field.api, field.name) for field in FIELDS]
    assert len(set(names)) == len(names)
    for field in FIELDS:
        for kind, make in KINDS.items():
            wire = field.request(make(40)).wire()
            head, _, body = wire.partition(b"\r\n\r\n")
            length = next(line for line in head.split(b"\r\n") if line.startswith(b"content-length: "))
            assert int(length.split()[1]) == len(body), (field, kind)
            target = head.split(b"\r\n")[0].split(b" ")
            assert len(target) == 3, (field, kind)


def test_every_api_has_fields() -> None:
    assert {field.api for field in FIELDS} == {endpoint.api.name for endpoint in ENDPOINTS} | {"http"}


def test_a_value_stands_in_json_as_it_is() -> None:
    field = next(field for field in FIELDS if (field.api, field.name) == ("native", "/translate text"))

    body = field.request(KINDS['(")*'](10)).body

    assert json.loads(body)["text"] == '"' * 10


def test_draws_are_the_same_for_the_same_chance_and_reach_every_api() -> None:
    first = list(itertools.islice(draws(random.Random(1), 1000), 500))

    again = itertools.islice(draws(random.Random(1), 1000), 500)

    assert [(field.name, value) for field, value in again] == [(field.name, value) for field, value in first]
    assert {field.api for field, _ in first} == {field.api for field in FIELDS}
