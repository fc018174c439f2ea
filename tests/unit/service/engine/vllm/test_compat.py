"""Everything that the pod uses of vLLM below its public API exists in the installed release; what moves is noticed."""

import re
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dragoman_service.engine.protocol import Chunk, Finish, Framing
from dragoman_service.engine.vllm import compat
from dragoman_service.engine.vllm import engine as engine_module
from dragoman_service.engine.vllm.compat import REACHES, Reach, missing_of
from dragoman_service.engine.vllm.engine import BY_TOKEN, AsyncLLMEngine
from dragoman_service.engine.vllm.process import _replace_scheduler, check_tokenizer
from dragoman_service.engine.vllm.start_report import FAILURE_MARKS, PHASE_MARKS
from dragoman_service.errors import PromptTemplateError, StartError
from dragoman_service.settings import Settings

pytestmark = [pytest.mark.vllm, pytest.mark.filterwarnings("ignore"), pytest.mark.timeout(600)]
"""Imports of vLLM take 10 s of CPU time, and warn."""

ROOT = Path(__file__).parents[5]
DEMO_MODEL = ROOT / "examples/demo-model"

ERROR_TEXTS = (
    "Available memory on node",
    "Engine core initialization failed",
    "Failed to infer device type",
    "Free memory on device",
    "Invalid quantization",
    "Model architectures",
    "No available memory for the cache blocks",
    "Unknown quantization method",
    "WorkerProc initialization failed",
    "derived max_model_len",
    "estimated maximum model length",
    "max seq len",
    "root cause above",
)
"""Parts of vLLM's own messages that `failures` recognizes."""

METRICS = (
    "vllm:generation_tokens",
    "vllm:kv_cache_usage_perc",
    "vllm:num_preemptions",
    "vllm:num_requests_running",
    "vllm:num_requests_waiting",
    "vllm:prompt_tokens",
    "vllm:request_queue_time_seconds",
    "vllm:request_success",
    *sorted(BY_TOKEN),
)
"""That the operator, the chart, the tuner and the pod read or hide."""


@pytest.fixture(scope="module")
def vllm() -> Path:
    """The installed vLLM's folder; nothing of it is started."""
    return Path(pytest.importorskip("vllm").__file__).parent


def fallbacks() -> dict[str, float]:
    (family,) = compat.FALLBACK.collect()
    return {sample.labels["feature"]: sample.value for sample in family.samples}


@pytest.mark.parametrize("reach", REACHES, ids=lambda reach: reach.name)
@pytest.mark.usefixtures("vllm")
def test_nothing_is_missing_in_the_installed_release(reach: Reach) -> None:
    assert missing_of(reach) == []


def test_the_page_has_the_table() -> None:
    page = (ROOT / "docs/reference/engine-pod.md").read_text()
    table = page[page.index("## Dependencies on vLLM internals") :].partition("\n## ")[0]
    assert re.findall(r"^\| `(\w+)`", table, re.MULTILINE) == [reach.name for reach in REACHES]


GONE = {"v1.core.sched.scheduler:Scheduler": "update_from_output gone finish_requests"}
"""The second does not exist."""


@pytest.mark.usefixtures("vllm")
def test_a_required_part_that_is_missing_ends_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compat, "REACHES", (Reach("a", GONE, required=True),))
    with pytest.raises(StartError, match=r"lacks Scheduler.gone \(a\)"):
        compat.check()


@pytest.mark.usefixtures("vllm")
def test_an_optional_one_is_logged_and_exported(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(compat, "REACHES", (Reach("b", GONE), Reach("c", {})))
    assert compat.check() == {"b"}
    assert (fallbacks()["b"], fallbacks()["c"]) == (1.0, 0.0)
    assert "lacks Scheduler.gone: without b" in caplog.text


@pytest.mark.usefixtures("vllm")
def test_an_unknown_scheduler_is_left_as_it_is(caplog: pytest.LogCaptureFixture) -> None:
    class Foreign:
        pass

    scheduling = SimpleNamespace(get_scheduler_cls=lambda: Foreign, scheduler_cls=Foreign)
    assert not _replace_scheduler(SimpleNamespace(scheduler_config=scheduling), coalesces=True)
    assert scheduling.scheduler_cls is Foreign
    assert fallbacks()["scheduler"] == 1.0
    assert "Foreign is unknown" in caplog.text
    compat.FALLBACK.clear()


@pytest.mark.usefixtures("vllm")
def test_vllm_s_own_schedulers_have_successors() -> None:
    from vllm.v1.core.sched.async_scheduler import AsyncScheduler
    from vllm.v1.core.sched.scheduler import Scheduler

    from dragoman_service.engine.vllm.scheduler import successor

    assert all(
        successor(scheduler, coalesces=coalesces)
        for scheduler in (Scheduler, AsyncScheduler)
        for coalesces in (False, True)
    )


def test_its_logs_errors_and_metrics_have_the_known_words(vllm: Path) -> None:
    source = "\n".join(path.read_text(encoding="utf-8") for path in vllm.rglob("*.py"))
    words = [mark for mark, _ in PHASE_MARKS] + [*FAILURE_MARKS, *ERROR_TEXTS, *METRICS]
    assert [each for each in words if each not in source] == []


@pytest.mark.usefixtures("vllm")
def test_its_reasons_to_finish_are_known() -> None:
    from vllm.v1.engine import FINISH_REASON_STRINGS

    assert {finish.value for finish in Finish} <= set(FINISH_REASON_STRINGS)


def test_a_tokenizer_without_the_turns_that_a_family_needs_is_found_before_the_start(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json"):
        (tmp_path / name).write_bytes((DEMO_MODEL / name).read_bytes())
    check_tokenizer({"model": str(tmp_path)}, Framing.CHAT)
    config = tmp_path / "tokenizer_config.json"
    config.write_text(re.sub(r'"chat_template"', '"no_template"', config.read_text()))
    with pytest.raises(PromptTemplateError, match="no chat template, which this prompt family needs"):
        check_tokenizer({"model": str(tmp_path)}, Framing.CHAT)
    # vLLM loads this one in its own way.
    check_tokenizer({"model": str(tmp_path), "tokenizer_mode": "mistral"}, Framing.CHAT)


class SilentEngine(AsyncLLMEngine):
    """Generates, and no step of it is reported."""

    async def generate(self, *_: Any, **__: Any) -> AsyncGenerator[Chunk]:
        yield Chunk("b", Finish.STOP, 1, 1)


async def test_a_release_that_reports_no_step_ends_the_start(
    make_settings: Callable[..., Settings], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_module, "STEP_REPORTED_S", 0.0)
    engine = SilentEngine(make_settings(), Framing.RAW)
    with pytest.raises(StartError, match="does not report its steps"):
        await engine._generate_once()
    engine._stepped()
    await engine._generate_once()
    await engine.aclose()
