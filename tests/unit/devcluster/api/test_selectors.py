import pytest

from dragoman_devcluster.api.errors import ApiError
from dragoman_devcluster.api.kinds import BUILT_IN
from dragoman_devcluster.api.selectors import field_selector, label_selector

OBJ = {
    "metadata": {"name": "a", "namespace": "n", "labels": {"app": "web", "tier": "front", "empty": ""}},
    "spec": {"nodeName": "one"},
    "status": {"phase": "Running"},
}
PODS = next(kind for kind in BUILT_IN if kind.resource == "pods")


@pytest.mark.parametrize(
    ("text", "selected"),
    [
        ("", True),
        ("app=web", True),
        ("app==web,tier=front", True),
        ("app=web,tier!=front", False),
        ("app in (web, api),tier", True),
        ("app notin (web)", False),
        ("missing notin (web)", True),
        ("!missing", True),
        ("!app", False),
        ("missing", False),
        ("missing!=x", True),
        ("empty=", True),
        ("app.kubernetes.io/name=x", False),
    ],
)
def test_label_selectors(text: str, selected: bool) -> None:
    assert label_selector(text)(OBJ) is selected


@pytest.mark.parametrize("text", ["app web", "a==b==c", "in (x)"])
def test_bad_label_selectors(text: str) -> None:
    with pytest.raises(ApiError, match="unable to parse requirement"):
        label_selector(text)


@pytest.mark.parametrize(
    ("text", "selected"),
    [
        ("metadata.name=a,status.phase=Running", True),
        ("status.phase!=Running", False),
        ("spec.nodeName=", False),
        ("spec.nodeName!=", True),
    ],
)
def test_field_selectors(text: str, selected: bool) -> None:
    assert field_selector(text, PODS)(OBJ) is selected


def test_fields_that_are_not_indexed_are_refused() -> None:
    with pytest.raises(ApiError, match=r"field label not supported: spec\.hostname"):
        field_selector("spec.hostname=a", PODS)
