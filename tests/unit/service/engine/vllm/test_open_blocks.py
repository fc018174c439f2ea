"""The shortcut around the allocation of slots allocates what vLLM does."""

import random
from types import SimpleNamespace
from typing import Any

import pytest

from dragoman_service.engine.vllm.open_blocks import block_size_of, has_open_block, with_shortcut

BLOCK = 16


def test_a_block_is_open_from_its_second_slot_to_the_last_but_one() -> None:
    found = [tokens for tokens in range(2 * BLOCK) if has_open_block(tokens, BLOCK)]
    assert found == [*range(1, BLOCK - 1), *range(BLOCK + 1, 2 * BLOCK - 1)]


def test_only_a_token_of_a_running_sequence_takes_the_shortcut() -> None:
    allocate = with_shortcut(lambda *_arguments, **_more: "allocated", "none", BLOCK)
    request = SimpleNamespace(num_computed_tokens=5)
    assert allocate(request, 1, num_lookahead_tokens=0) == "none"
    assert allocate(request, 2, num_lookahead_tokens=0) == "allocated"
    assert allocate(request, 1, num_lookahead_tokens=3) == "allocated"
    assert allocate(request, 1, num_lookahead_tokens=0, num_new_computed_tokens=0) == "allocated"
    assert allocate(request, 1, 0, num_lookahead_tokens=0) == "allocated"
    assert allocate(SimpleNamespace(num_computed_tokens=16), 1, num_lookahead_tokens=0) == "allocated"


class Sequences:
    """Sequences that share a real manager, and what it returned and keeps."""

    def __init__(self, *, short: bool) -> None:
        import torch
        from vllm.utils.hashing import sha256
        from vllm.v1.core.kv_cache_manager import KVCacheManager
        from vllm.v1.core.kv_cache_utils import get_request_block_hasher, init_none_hash
        from vllm.v1.kv_cache_interface import FullAttentionSpec, KVCacheConfig, KVCacheGroupSpec

        spec = FullAttentionSpec(block_size=BLOCK, num_kv_heads=1, head_size=1, dtype=torch.float32)
        config = KVCacheConfig(60, [], [KVCacheGroupSpec(["layer"], spec)])
        self.manager = KVCacheManager(config, 1024, BLOCK, BLOCK, enable_caching=True)
        self.calls = 0
        vllms = self.manager.allocate_slots

        def counted(*arguments: Any, **more: Any) -> Any:
            self.calls += 1
            return vllms(*arguments, **more)

        self.allocate = (
            with_shortcut(counted, self.manager.empty_kv_cache_blocks, BLOCK) if short else counted
        )
        init_none_hash(sha256)
        self._hasher = get_request_block_hasher(BLOCK, sha256)
        self.running: dict[str, Any] = {}
        self.returned: list[Any] = []

    def begin(self, name: str, prompt: list[int]) -> None:
        from vllm import SamplingParams
        from vllm.v1.request import Request

        request = Request(name, prompt, SamplingParams(max_tokens=500), None, block_hasher=self._hasher)
        blocks, cached = self.manager.get_computed_blocks(request)[:2]
        new = len(prompt) - cached
        found = self.allocate(request, new, num_new_computed_tokens=cached, new_computed_blocks=blocks)
        self.returned.append(None if found is None else found.get_block_ids())
        if found is not None:
            request.num_computed_tokens = len(prompt)
            request.append_output_token_ids(len(name))
            self.running[name] = request

    def step(self, token: int) -> None:
        for name, request in list(self.running.items()):
            found = self.allocate(request, 1, num_lookahead_tokens=0)
            self.returned.append(None if found is None else found.get_block_ids())
            if found is None:
                self.end(name)
                continue
            request.num_computed_tokens += 1
            request.append_output_token_ids(token)

    def end(self, name: str) -> None:
        self.manager.free(self.running.pop(name))

    @property
    def kept(self) -> tuple[Any, ...]:
        pool = self.manager.block_pool
        tables = [self.manager.get_block_ids(name) for name in self.running]
        return pool.get_num_free_blocks(), len(pool.cached_block_hash_to_block), tables


@pytest.mark.vllm
@pytest.mark.filterwarnings("ignore")
@pytest.mark.timeout(600)
def test_blocks_and_prefixes_are_those_of_vllm() -> None:
    draw, plain, short = random.Random(1), Sequences(short=False), Sequences(short=True)
    for number in range(600):
        prompt = [7] * draw.choice((16, 40)) + [draw.randint(0, 99) for _ in range(draw.randint(1, 60))]
        starts = draw.random() < 0.05
        ended = draw.choice(list(plain.running)) if plain.running and draw.random() < 0.03 else None
        for sequences in (plain, short):
            if starts:
                sequences.begin(str(number), prompt)
            if ended is not None:
                sequences.end(ended)
            sequences.step(number % 50)
        assert short.returned == plain.returned
        assert short.kept == plain.kept
    assert None in plain.returned
    assert short.calls < 0.3 * plain.calls


@pytest.mark.vllm
@pytest.mark.filterwarnings("ignore")
@pytest.mark.timeout(600)
def test_other_blocks_than_those_of_full_attention_are_left_to_vllm() -> None:
    import torch
    from vllm.v1.kv_cache_interface import FullAttentionSpec, SlidingWindowSpec

    sizes = {"block_size": BLOCK, "num_kv_heads": 1, "head_size": 1, "dtype": torch.float32}
    full = SimpleNamespace(kv_cache_spec=FullAttentionSpec(**sizes))
    window = SimpleNamespace(kv_cache_spec=SlidingWindowSpec(**sizes, sliding_window=64))

    def found(*groups: Any, block_size: int = BLOCK, connector: Any = None) -> int | None:
        config = SimpleNamespace(kv_cache_groups=groups)
        return block_size_of(
            SimpleNamespace(kv_cache_config=config, connector=connector, block_size=block_size)
        )

    assert found(full) == BLOCK
    assert found(window) is None
    assert found(full, window) is None
    assert found(full, block_size=2 * BLOCK) is None
    assert found(full, connector="offloading") is None
