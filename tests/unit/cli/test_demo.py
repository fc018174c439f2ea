"""What ends `dragoman demo` before it does anything, without a traceback."""

from pathlib import Path

import pytest

from dragoman import demo
from dragoman.exits import FAILED, USAGE

ROOT = Path(__file__).parents[3]


def test_another_folder_is_no_checkout(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match=str(USAGE)):
        demo.main(["--root", str(tmp_path)])
    assert "no checkout of Dragoman" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "there is no such file"),
        ("clusters: [1]", "Expected key current-context"),
        (
            "{clusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}], users: [{name: u, user: {token: t}}], "
            "contexts: [{name: x, context: {cluster: c, user: u}}], current-context: x}",
            "127.0.0.1:1",
        ),
    ],
)
def test_a_cluster_that_cannot_be_used_is_a_sentence(
    content: str | None, reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "kubeconfig"
    if content is not None:
        file.write_text(content)
    assert demo.main(["--root", str(ROOT), "--kubeconfig", str(file)]) == FAILED
    (said,) = capsys.readouterr().err.splitlines()
    assert said.startswith("dragoman demo: ")
    assert reason in said
