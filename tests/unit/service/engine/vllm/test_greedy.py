"""The shortcut for greedy steps in vLLM's sampler, with fakes for what needs a GPU."""

from types import SimpleNamespace
from typing import Any

import pytest

np: Any = None
torch: Any = None
pytestmark = [pytest.mark.vllm, pytest.mark.filterwarnings("ignore"), pytest.mark.timeout(600)]

BY_VLLM = "sampled by vLLM"
LOGITS: Any = None


@pytest.fixture(scope="module", autouse=True)
def tensors() -> None:
    """Importing torch takes seconds, and most processes collect these tests without running them."""
    global np, torch, LOGITS
    np = pytest.importorskip("numpy", reason="comes with vLLM")
    torch = pytest.importorskip("torch", reason="comes with vLLM")
    LOGITS = torch.tensor([[0.0, 3.0, 1.0], [2.0, 0.0, 1.0], [1.0, 1.0, 0.5]])


@pytest.fixture
def sampler(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A sampler of four sequences, whose base class does nothing."""
    from vllm.v1.worker.gpu.sample.sampler import Sampler

    from dragoman_service.engine.vllm.greedy import GreedySampler

    def init(self: Any, max_num_reqs: int, compute_nans: bool = False) -> None:
        self.compute_nans = compute_nans
        self.writes = 0
        self.req_states = SimpleNamespace(prefill_len=SimpleNamespace(gpu=torch.full((max_num_reqs,), 5)))
        self.penalties_state = SimpleNamespace(use_penalty=np.zeros(max_num_reqs, dtype=bool))
        self.logit_bias_state = SimpleNamespace(use_logit_bias=np.zeros(max_num_reqs, dtype=bool))
        self.bad_words_state = SimpleNamespace(
            num_bad_words=SimpleNamespace(np=np.zeros(max_num_reqs, dtype=np.int32))
        )
        self.sampling_states = SimpleNamespace(num_logprobs=np.full(max_num_reqs, -1, dtype=np.int32))

    def apply_staged_writes(self: Any) -> None:
        self.writes += 1

    monkeypatch.setattr(Sampler, "__init__", init)
    monkeypatch.setattr(Sampler, "add_request", lambda *_: None)
    monkeypatch.setattr(Sampler, "apply_staged_writes", apply_staged_writes)
    monkeypatch.setattr(Sampler, "__call__", lambda *_: BY_VLLM)
    return GreedySampler(4)


def params(temperature: float = 0.0, logprob_token_ids: list[int] | None = None) -> Any:
    return SimpleNamespace(temperature=temperature, logprob_token_ids=logprob_token_ids)


def batch(*, prefilling: bool = False, drafts: int = 0) -> Any:
    """Sequences 0, 2 and 3."""
    return SimpleNamespace(
        num_reqs=3,
        num_draft_tokens=drafts,
        idx_mapping_np=np.array([0, 2, 3]),
        idx_mapping=torch.tensor([0, 2, 3]),
        is_prefilling_np=np.array([prefilling, False, False]),
        seq_lens=torch.tensor([5, 6, 7], dtype=torch.int32),
        cu_num_logits=torch.arange(4, dtype=torch.int32),
    )


def add_all(sampler: Any) -> None:
    for index in (0, 2, 3):
        sampler.add_request(index, 5, params())


def test_a_greedy_step_takes_the_first_of_the_most_probable_tokens(sampler: Any) -> None:
    add_all(sampler)
    found = sampler(LOGITS, batch())
    assert found.sampled_token_ids.tolist() == [[1], [0], [0]]
    assert found.num_sampled.tolist() == [1, 1, 1]
    assert found.num_rejected.tolist() == [0, 0, 0]
    assert found.num_sampled.dtype == torch.int32


@pytest.mark.parametrize(
    "option", ["temperature", "logprob_token_ids", "penalty", "bias", "bad_words", "logprobs"]
)
def test_a_step_with_an_option_that_can_change_a_token_is_sampled_by_vllm(sampler: Any, option: str) -> None:
    add_all(sampler)
    changed = {
        "penalty": (sampler.penalties_state.use_penalty, True),
        "bias": (sampler.logit_bias_state.use_logit_bias, True),
        "bad_words": (sampler.bad_words_state.num_bad_words.np, 1),
        "logprobs": (sampler.sampling_states.num_logprobs, 0),
    }
    if option in changed:
        values, value = changed[option]
        values[2] = value
    settings: dict[str, dict[str, Any]] = {
        "temperature": {"temperature": 0.7},
        "logprob_token_ids": {"logprob_token_ids": [1]},
    }
    sampler.add_request(2, 5, params(**settings.get(option, {})))
    assert sampler(LOGITS, batch()) == BY_VLLM


def test_a_slot_that_a_greedy_sequence_takes_over_is_greedy(sampler: Any) -> None:
    add_all(sampler)
    sampler.add_request(3, 5, params(temperature=0.7))
    sampler.add_request(3, 5, params())
    assert sampler(LOGITS, batch()) != BY_VLLM


def test_a_sequence_outside_of_the_step_does_not_matter(sampler: Any) -> None:
    add_all(sampler)
    sampler.add_request(1, 5, params(temperature=0.7))
    assert sampler(LOGITS, batch()) != BY_VLLM


def test_draft_tokens_are_left_to_vllm(sampler: Any) -> None:
    add_all(sampler)
    assert sampler(LOGITS, batch(drafts=1)) == BY_VLLM


def test_prompts_in_chunks_are_counted_by_vllm_s_kernel(
    sampler: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dragoman_service.engine.vllm import greedy

    counted = (torch.tensor([0, 1, 1]), torch.tensor([0, 0, 0]))
    monkeypatch.setattr(greedy, "get_num_sampled_and_rejected", lambda *_: counted)
    add_all(sampler)
    found = sampler(LOGITS, batch(prefilling=True))
    assert (found.num_sampled.tolist(), found.num_rejected.tolist()) == ([0, 1, 1], [0, 0, 0])


def test_settings_are_copied_to_the_gpu_once_for_each_new_sequence(sampler: Any) -> None:
    sampler.apply_staged_writes()
    sampler.apply_staged_writes()
    assert sampler.writes == 1
    sampler.add_request(0, 5, params())
    sampler.apply_staged_writes()
    sampler.apply_staged_writes()
    assert sampler.writes == 2
