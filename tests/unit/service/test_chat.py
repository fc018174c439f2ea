"""A chat as work for the engine."""

from typing import Any

import pytest

from dragoman_protocols.chat import Chat, Sampling
from dragoman_protocols.errors import InvalidFieldError
from dragoman_protocols.openai.completion import Completion
from dragoman_service.engine.protocol import Decoding, Framing
from dragoman_service.http.chat import ChatWork, decoding_of

CHAT = Chat((("user", "Hello"),), Sampling(), 5, Completion("demo"))


def test_sampling_is_the_clients_and_else_the_publishers() -> None:
    default = Decoding(temperature=0.7, top_p=0.6, top_k=20, stop=("</s>",), max_prompt_tokens=5)
    sampling = Sampling(temperature=0, max_tokens=7, stop=("END",), seed=3, presence_penalty=1)
    assert decoding_of(sampling, default, 100, stream=True) == Decoding(
        temperature=0,
        top_p=0.6,
        top_k=20,
        stop=("</s>", "END"),
        max_tokens=7,
        stream=True,
        seed=3,
        presence_penalty=1,
        stop_on_repetition=False,
    )
    assert decoding_of(Sampling(), default, 100, stream=False).max_tokens == 100


@pytest.mark.parametrize("framing", Framing)
def test_a_model_without_a_chat_template_refuses(framing: Framing) -> None:
    class Family:
        pass

    class Core:
        family: Any = Family()

    core: Any = Core()
    core.family.framing = framing
    if framing is not Framing.RAW:
        assert ChatWork(CHAT).check(core) is None
        return
    with pytest.raises(InvalidFieldError, match="translation_options"):
        ChatWork(CHAT).check(core)
