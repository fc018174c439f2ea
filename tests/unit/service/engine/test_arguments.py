import pytest

from dragoman_service.engine.arguments import merged
from dragoman_service.errors import SettingsError

KNOWN = ("model", "max_num_seqs", "enforce_eager")


def test_arguments_without_a_flag_are_the_engine_s() -> None:
    assert merged({"model": "m", "max_num_seqs": None}, {"enforce_eager": True}, KNOWN) == {
        "model": "m",
        "enforce_eager": True,
    }


def test_an_extra_argument_may_set_what_no_flag_sets() -> None:
    assert merged({"max_num_seqs": None}, {"max_num_seqs": 3}, KNOWN) == {"max_num_seqs": 3}


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        ({"enforce_eagr": True}, "no argument 'enforce_eagr'; did you mean 'enforce_eager'?"),
        ({"qqq": 1}, "no argument 'qqq'"),
        ({"model": "n"}, "'model' is set twice"),
    ],
)
def test_others_are_refused_by_name(extra: dict[str, object], message: str) -> None:
    with pytest.raises(SettingsError) as refused:
        merged({"model": "m"}, extra, KNOWN)
    assert (
        str(refused.value).partition("--engine-args: ")[2].removeprefix("the engine has ").startswith(message)
    )
