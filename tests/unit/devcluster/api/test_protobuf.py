"""Bodies as Go clients write them, built here by hand from the wire format."""

import pytest

from dragoman_devcluster.api.errors import ApiError
from dragoman_devcluster.api.protobuf import decode


def varint(value: int) -> bytes:
    written = bytearray()
    while value > 0x7F:
        written.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*written, value])


def field(number: int, value: int | str | bytes) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def body(kind: str, message: bytes) -> bytes:
    about = field(1, "v1") + field(2, kind)
    return b"k8s\x00" + field(1, about) + field(2, message) + field(3, "") + field(4, "")


def test_a_secret_as_helm_writes_its_records():
    metadata = b"".join(
        [
            field(1, "sh.helm.release.v1.demo.v1"),
            field(2, ""),
            field(3, ""),
            field(8, b""),
            field(11, field(1, "owner") + field(2, "helm")),
            field(11, field(1, "version") + field(2, "1")),
        ]
    )
    data = field(1, "release") + field(2, b"\x1f\x8b" + bytes(2))
    secret = decode(body("Secret", field(1, metadata) + field(2, data) + field(3, "helm.sh/release.v1")))
    assert secret == {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "sh.helm.release.v1.demo.v1", "labels": {"owner": "helm", "version": "1"}},
        "data": {"release": "H4sAAA=="},
        "type": "helm.sh/release.v1",
    }


def test_a_deletion_without_options():
    assert decode(body("DeleteOptions", b"")) == {"apiVersion": "v1", "kind": "DeleteOptions"}


def test_a_deletion_whose_zero_means_at_once():
    sent = field(1, 0) + field(4, "Background") + field(2, field(1, "some-uid"))
    deletion = decode(body("DeleteOptions", sent))
    assert deletion["gracePeriodSeconds"] == 0
    assert deletion["propagationPolicy"] == "Background"
    assert deletion["preconditions"] == {"uid": "some-uid"}


@pytest.mark.parametrize(
    "unknown",
    [body("Lease", field(1, field(1, "name"))), body("Secret", field(99, "later"))],
    ids=["kind", "field"],
)
def test_what_is_not_known_is_refused_and_not_half_read(unknown):
    with pytest.raises(ApiError) as refused:
        decode(unknown)
    assert refused.value.reason == "UnsupportedMediaType"


@pytest.mark.parametrize(
    "broken",
    [b"", b"{}", b"k8s\x00", body("Secret", b"\x0a\x7f")],
    ids=["empty", "json", "nothing", "cut"],
)
def test_broken_bodies_are_bad_requests(broken):
    with pytest.raises(ApiError) as refused:
        decode(broken)
    assert refused.value.reason == "BadRequest"
