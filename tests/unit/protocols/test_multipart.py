"""Forms with a file: the fields are found wherever they are, and no bytes bring the reader down."""

import random
from contextlib import suppress

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dragoman_protocols.errors import MalformedRequestError
from dragoman_protocols.multipart import MAX_FIELD_BYTES, MAX_PARTS, MultipartReader, Upload, read_form

TYPE = b"multipart/form-data; boundary=BoUnd"
FIELD = b'--BoUnd\r\nContent-Disposition: form-data; name="%s"\r\n\r\n%s\r\n'
FILE = b'--BoUnd\r\nContent-Disposition: form-data; name="file"; filename="%s"\r\nX: y\r\n\r\n%s\r\n'
END = b"--BoUnd--\r\n"


def read(body: bytes, content_type: bytes | None = TYPE, size: int = 65536) -> Upload:
    form = MultipartReader(content_type)
    for at in range(0, len(body), size):
        form.feed(body[at : at + size])
    return form.finish()


@given(
    st.permutations(["file", "source", "target", "api_key", "unknown"]),
    st.binary(max_size=2000),
    st.integers(1, 300),
)
def test_the_fields_are_found_in_any_order_and_however_the_bytes_come(
    order: list[str], content: bytes, size: int
) -> None:
    content = content.replace(b"--BoUnd", b"")
    parts = {name: FIELD % (name.encode(), b"value of " + name.encode()) for name in order}
    parts["file"] = FILE % (b"a.bin", content)
    message = read(b"".join(parts[name] for name in order) + END, size=size)
    assert message == Upload({name: [f"value of {name}"] for name in order if name != "file"})


@pytest.mark.parametrize("is_first", [True, False])
@pytest.mark.parametrize("name", ["memory", "terms"])
def test_a_memory_or_a_glossary_is_not_the_file(name: str, is_first: bool) -> None:
    attached = (FILE % (b"m.txt", b"content")).replace(b'name="file"', f'name="{name}"'.encode())
    parts = [FILE % (b"a.txt", b"Hello"), attached]
    body = b"".join(reversed(parts) if is_first else parts) + END
    found = read_form(TYPE, body, keep_file=True)
    assert (found.file_name, found.content, getattr(found, name)) == ("a.txt", b"Hello", b"content")
    assert found.sample == "Hello"
    assert read(body) == Upload({}, "Hello")


@given(
    st.binary(max_size=500), st.one_of(st.none(), st.just(TYPE), st.binary(max_size=100)), st.integers(1, 70)
)
@example(b"--BoUnd\r\n\r\n", TYPE, 3)
@example(b"", b'multipart/form-data; boundary="', 1)
@example(b"", b"multipart/form-data; boundary=" + b"x" * 5000, 1)
def test_any_bytes_are_read_or_refused(body: bytes, content_type: bytes | None, size: int) -> None:
    with suppress(MalformedRequestError):
        assert isinstance(read(body, content_type, size), Upload)


@given(st.randoms(use_true_random=False), st.integers(1, 200))
def test_spoiled_forms_are_read_or_refused(chance: random.Random, size: int) -> None:
    whole = bytearray(
        FIELD % (b"source", b"en") + FILE % (b"a.txt", b"Hello\r\n--BoUn") + FIELD % (b"target", b"de")
    )
    for _ in range(chance.randrange(1, 4)):
        at = chance.randrange(len(whole))
        whole[at : at + chance.randrange(5)] = chance.randbytes(chance.randrange(5))
    with suppress(MalformedRequestError):
        assert isinstance(read(bytes(whole) + END, size=size), Upload)


@pytest.mark.parametrize(
    ("content_type", "body", "message"),
    [
        (None, b"", "no form with a file"),
        (b"application/json", b"{}", "no form with a file"),
        (b"multipart/form-data", b"", "no form with a file"),
        (TYPE, b"", "it has no end"),
        (TYPE, FIELD % (b"source", b"en"), "it has no end"),
        (TYPE, b"x", "cannot be read"),
        (TYPE, FIELD % (b"source", b"\xff") + END, "source is not UTF-8"),
        (TYPE, FIELD % (b"target", b"d" * (MAX_FIELD_BYTES + 1)) + END, "target is longer than"),
        (TYPE, FIELD % (b"x", b"y") * (MAX_PARTS + 1) + END, "more than"),
        (TYPE, b"--BoUnd\r\n" + b"a: b\r\n" * 100 + b"\r\n" + END, "cannot be read"),
        (TYPE, FIELD % (b"x", b"y") + b"--BoUnd" + b" " * 200_000 + b"\r\n" + END, "more between two parts"),
    ],
)
def test_errors_name_the_cause(content_type: bytes | None, body: bytes, message: str) -> None:
    with pytest.raises(MalformedRequestError, match=message):
        read(body, content_type)


@pytest.mark.parametrize("filling", [b"\r", b"\r\n", b"\r\n--BoUn", b"--BoUn\r\n", b"z"])
def test_content_that_is_nearly_a_boundary_is_content(filling: bytes) -> None:
    body = FILE % (b"a.bin", filling * (1_000_000 // len(filling))) + FIELD % (b"source", b"en") + END
    assert read(body) == Upload({"source": ["en"]})


@pytest.mark.parametrize(
    "filling", [b"\r\n--BoUndz", b"\r\n--BoUnd-z", b"\r\n--BoUnd\r\n", b"\r\n--BoUnd\rz"]
)
def test_boundaries_without_end_are_refused(filling: bytes) -> None:
    """Ten megabytes of them took the parser three seconds, in which no other request would have been answered."""
    with pytest.raises(MalformedRequestError, match=r"more than|cannot be read"):
        read(FILE % (b"a.bin", filling * 10_000) + END)


@pytest.mark.parametrize(
    ("name", "content", "sample"),
    [
        (b"a.TXT", "Öffnet der Park?".encode(), "Öffnet der Park?"),
        (b"a.html", b"<html><body class='x'>Where is it?</body>", "Where is it?"),
        (b"a.srt", b"00:00:01,000 --> 00:00:02,500\nWhere is it?\n", "Where is it?"),
        (b"a.docx", b"PK\x03\x04", ""),
        (b"a.txt", "ö".encode() * 5000, "ö" * 4096),
    ],
)
def test_the_beginning_of_a_text_tells_its_language(name: bytes, content: bytes, sample: str) -> None:
    assert read(FILE % (name, content) + FIELD % (b"source", b"auto") + END, size=1000) == Upload(
        {"source": ["auto"]}, sample
    )


def test_a_file_named_as_a_field_is_none() -> None:
    file = FILE.replace(b'name="file"', b'name="target"') % (b"a.txt", b"de")
    assert read(file + END).fields == {}


ENCODED = b'filename="=?utf-8?B?w5xiZXJzaWNodC50eHQ=?="'


@pytest.mark.parametrize(
    ("disposition", "name"),
    [
        (ENCODED + b"; filename*=utf-8''%C3%9Cbersicht.txt", "Übersicht.txt"),
        (ENCODED, "Übersicht.txt"),
        (b"filename==?UTF-8?b?w5xiZXJzaWNodC50eHQ=?=", "Übersicht.txt"),
        (b"FileName*=UTF-8'de'%c3%9cbersicht.txt", "Übersicht.txt"),
        (b"filename*=\"utf-8''a+b.txt\"; filename=c.txt", "a+b.txt"),
        # What is not valid leaves the plain name as it is.
        (b"filename=a.txt; filename*=utf-8''%FF.txt", "a.txt"),
        (b"filename=a.txt; filename*=utf-8''%C3%9.txt", "a.txt"),
        (b"filename=a.txt; filename*=iso-8859-1''%DC.txt", "a.txt"),
        (b"filename=a.txt; filename*=utf-8''", "a.txt"),
        (b"filename*=iso-8859-1''%DC.txt", ""),
        (b'filename="=?utf-8?B?w5xia?="', "=?utf-8?B?w5xia?="),
        (b'filename="=?utf-8?B?/w==?="', "=?utf-8?B?/w==?="),
        (b"filename=\"; filename*=utf-8''a.txt\"", "; filename*=utf-8''a.txt"),
    ],
)
def test_a_file_name_may_be_encoded(disposition: bytes, name: str) -> None:
    body = (FILE % (b"", b"Hello")).replace(b'filename=""', disposition) + END
    found = read_form(TYPE, body, keep_file=True)
    assert (found.file_name, found.content, found.fields) == (name, b"Hello", {})
    assert found.sample == ("Hello" if name.endswith(".txt") else "")


def test_a_field_whose_name_looks_like_a_file_name_is_a_field() -> None:
    assert read(FIELD % (b"a; filename*=utf-8''b.txt", b"x") + END).fields == {
        "a; filename*=utf-8''b.txt": ["x"]
    }


def test_the_part_file_needs_no_file_name() -> None:
    body = FIELD % (b"file", b"\0\xff" * MAX_FIELD_BYTES) + FIELD % (b"source", b"en") + END
    assert read(body, size=1000) == Upload({"source": ["en"]})
    found = read_form(TYPE, body, keep_file=True)
    assert (found.file_name, found.content) == ("", b"\0\xff" * MAX_FIELD_BYTES)


def test_the_file_is_kept_on_request() -> None:
    body = FIELD % (b"q", b"d" * (MAX_FIELD_BYTES + 1)) + FILE % ("ä.bin".encode(), b"\0\xff") + END
    message = read_form(TYPE, body, keep_file=True)
    assert (message.file_name, message.content) == ("ä.bin", b"\0\xff")
    assert message.fields == {"q": ["d" * (MAX_FIELD_BYTES + 1)]}
