"""A request's translation memory through the whole core."""

from collections.abc import Callable
from typing import Any

import pytest

from dragoman_protocols.memories import segment_key
from dragoman_protocols.translation import Format, Split, TranslationRequest, TranslationResult
from dragoman_service.core.long_texts import LongTexts
from dragoman_service.core.translator import Translator
from dragoman_service.core.worker_process import WorkerProcess, WorkerProcessError
from dragoman_service.metric_definitions import REUSED_SEGMENTS

MEMORY = {
    "The cat sleeps.": "Die Katze schläft.",
    "Hello {0}, welcome!": "Hallo {0}, willkommen!",
    "Tom & Jerry": "Tom & Jerry < Spike",
    "Dogs bark. Cats meow.": "Hunde bellen, Katzen miauen.",
    "12.5": "12,5",
    "<b>bold</b> text": "<b>fetter</b> Text",
}

Core = Callable[..., Translator]


def reversing(text: str, _: int) -> str:
    return text[::-1]


async def translated(
    core: Translator, *texts: str, memory: dict[str, str] = MEMORY, **options: Any
) -> list[TranslationResult]:
    return await core.translate(TranslationRequest(texts, "de", "en", memory=memory, **options))


async def test_a_segment_of_the_memory_is_not_generated(core: Core, counts: Any) -> None:
    found, other = await translated(core(reversing), "The cat sleeps.", "Birds sing.")
    assert (found.text, found.from_memory, found.segments) == ("Die Katze schläft.", 1, 1)
    assert (found.prompt_tokens, found.output_tokens, found.warnings) == (0, 0, ())
    assert (other.text, other.from_memory) == (".gnis sdriB", 0)
    assert counts.of(REUSED_SEGMENTS) == ["memory"]
    assert counts.segments == 1


async def test_sentences_of_a_text_are_segments_where_there_is_a_memory(core: Core) -> None:
    (found,) = await translated(core(reversing), "Birds sing. The  cat sleeps.\n\nThe cat sleeps.\n")
    assert found.text == ".gnis sdriB Die Katze schläft.\n\nDie Katze schläft.\n"
    assert (found.from_memory, found.segments) == (2, 3)


async def test_a_text_without_a_segment_of_the_memory_is_segmented_as_without_it(core: Core) -> None:
    texts = "Birds sing. Fish swim.", "Birds sing. The cat sleeps.", "Fish swim. Birds sing."
    results = await translated(core(reversing), *texts)
    assert [(each.segments, each.from_memory) for each in results] == [(1, 0), (2, 1), (1, 0)]
    assert [each.text for each in results] == [
        texts[0][::-1],
        ".gnis sdriB Die Katze schläft.",
        texts[2][::-1],
    ]


async def test_a_split_that_is_requested_or_deployed_holds(core: Core) -> None:
    text = "Birds sing. The cat sleeps."
    (requested,) = await translated(core(reversing), text, split=Split.LINES)
    (deployed,) = await translated(core(reversing, split=Split.LINES), text)
    assert (requested.from_memory, deployed.from_memory) == (0, 0)


async def test_a_whole_text_of_the_memory_is_not_split(core: Core) -> None:
    (found,) = await translated(core(reversing), "  Dogs bark. Cats meow.\n")
    assert (found.text, found.from_memory, found.segments) == ("  Hunde bellen, Katzen miauen.\n", 1, 1)
    (lines,) = await translated(core(reversing), "Dogs bark.\nCats meow.")
    assert lines.from_memory == 0


@pytest.mark.parametrize(
    ("text", "expected"), [("Hello {0}, welcome!", "Hallo {0}, willkommen!"), ("12.5", "12,5")]
)
async def test_placeholders_and_numbers_are_compared_as_they_stand(
    core: Core, text: str, expected: str
) -> None:
    (found,) = await translated(core(reversing), text)
    assert (found.text, found.from_memory) == (expected, 1)
    (other,) = await translated(core(reversing), text.replace("0", "1").replace("12", "13"))
    assert other.from_memory == 0


async def test_markup_is_taken_from_the_memory_where_it_has_no_tags(core: Core) -> None:
    texts = "<p>The cat sleeps.</p><p>Tom &amp; Jerry</p>", "<p><b>bold</b> text</p>"
    first, second = await translated(core(reversing), *texts, format=Format.HTML)
    assert first.text == "<p>Die Katze schläft.</p><p>Tom &amp; Jerry &lt; Spike</p>"
    assert (first.from_memory, second.from_memory) == (2, 0)


async def test_whole_paragraphs_of_markup_are_one_segment_where_they_have_no_tags(core: Core) -> None:
    texts = (
        "<p>Dogs bark. Cats meow.</p><p>Fish swim.</p>",
        "Dogs bark. Cats meow.",
        "Dogs <i>bark.</i> Cats meow.",
    )
    results = await translated(core(reversing), *texts, format=Format.HTML)
    assert [each.from_memory for each in results] == [1, 1, 0]
    assert results[0].text == "<p>Hunde bellen, Katzen miauen.</p><p>.miws hsiF</p>"
    assert results[1].text == "Hunde bellen, Katzen miauen."


async def test_letter_case_counts_and_a_text_in_the_target_language_stays(core: Core) -> None:
    (other,) = await translated(core(reversing), "the cat sleeps.")
    assert other.from_memory == 0
    german = "Der Hund bellt laut und die Katze schläft ruhig im Garten."
    request = TranslationRequest((german,), "de", memory={german: "nothing"})
    (kept,) = await core(reversing).translate(request)
    assert (kept.text, kept.from_memory) == (german, 0)


async def test_a_stream_has_the_memory_s_segments(core: Core) -> None:
    request = TranslationRequest(("The cat sleeps. Birds sing.",), "de", "en", memory=MEMORY)
    deltas = [delta async for delta in core(reversing).stream(request)]
    assert [delta.text for delta in deltas] == ["Die Katze schläft.", " .gnis sdriB", ""]
    assert deltas[-1].result is not None
    assert deltas[-1].result.from_memory == 1


async def test_long_texts_are_prepared_without_the_memory(
    core: Core, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[TranslationRequest] = []

    async def prepared(_: WorkerProcess, request: TranslationRequest) -> Any:
        sent.append(request)
        raise WorkerProcessError

    monkeypatch.setattr("dragoman_service.core.translator.prepared", prepared)
    process = WorkerProcess("process for long texts", lambda: lambda: LongTexts(None, None), 10)
    (found,) = await translated(core(reversing, long_texts=process), "The cat sleeps. " * 500)
    assert found.from_memory == 500
    assert [dict(request.memory) for request in sent] == [{}]


def test_keys_differ_by_more_than_white_space() -> None:
    assert segment_key(" a\t b\n") == segment_key("a b") == "a b"
    assert segment_key("A b") != segment_key("a b")
