"""Many lines: in batches, several at a time, those that fail one by one."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping

from dragoman.translator import RefusedError, Translator, Wanted

MAX_BATCH_CHARACTERS = 8_000
"""A request of a few seconds, far from the limits of bodies; a longer line is a request of its own."""

LINE_END = re.compile(r"(\r\n|[\r\n])")

Done = Callable[[Mapping[int, str]], Awaitable[None]]
"""Keeps the translations of a batch, by line number."""


def split(text: str) -> tuple[list[str], list[str]]:
    r"""The lines of a text without their ends, and these ends: ``\n``, ``\r\n``, ``\r``, or nothing after the last."""
    parts = [*LINE_END.split(text), ""]
    lines, ends = parts[::2], parts[1::2]
    if not lines[-1]:
        lines.pop()
        ends.pop()
    return lines, ends


def one_line(line: str, translation: str) -> str:
    """A translation. If the text is one line, line breaks that a model added are removed."""
    added = LINE_END.search(translation) and not LINE_END.search(line)
    return " ".join(translation.split()) if added else translation


def batches(lines: Iterable[tuple[int, str]], max_lines: int) -> Iterator[dict[int, str]]:
    """Lines by their number, in their order, at most `max_lines` and `MAX_BATCH_CHARACTERS` a batch."""
    batch: dict[int, str] = {}
    characters = 0
    for number, line in lines:
        if batch and (len(batch) >= max_lines or characters + len(line) > MAX_BATCH_CHARACTERS):
            yield batch
            batch, characters = {}, 0
        batch[number] = line
        characters += len(line)
    if batch:
        yield batch


async def translate_lines(
    translator: Translator,
    wanted: Wanted,
    lines: Iterable[tuple[int, str]],
    done: Done,
    *,
    max_lines: int,
    concurrency: int,
) -> dict[int, RefusedError]:
    """Translate lines; `done` is called with each batch as it is finished, in any order.

    Returns:
        Why lines failed, by their number; all others are done.

    Raises:
        RefusedError: Every line would be refused for this cause.
        UnreachableError: The service does not answer.
    """
    waiting = batches(lines, max_lines)
    failed: dict[int, RefusedError] = {}

    async def work() -> None:
        for batch in waiting:
            translated, refused = await _batch(translator, wanted, batch)
            failed.update(refused)
            if translated:
                await done(translated)

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(concurrency):
                group.create_task(work())
    except* Exception as errors:
        # All workers fail for the same cause.
        cause: BaseException = errors
        while isinstance(cause, BaseExceptionGroup):
            cause = cause.exceptions[0]
        raise cause from None
    return failed


async def _batch(
    translator: Translator, wanted: Wanted, batch: Mapping[int, str]
) -> tuple[dict[int, str], dict[int, RefusedError]]:
    try:
        translations = await translator.texts([*batch.values()], wanted)
    except RefusedError as error:
        if not _is_of_the_text(error, wanted):
            raise
        if len(batch) == 1:
            return {}, dict.fromkeys(batch, error)
    else:
        return dict(zip(batch, map(one_line, batch.values(), translations), strict=True)), {}
    # One of them is to blame: each by itself.
    translated: dict[int, str] = {}
    failed: dict[int, RefusedError] = {}
    for number, line in batch.items():
        done, refused = await _batch(translator, wanted, {number: line})
        translated |= done
        failed |= refused
    return translated, failed


def _is_of_the_text(error: RefusedError, wanted: Wanted) -> bool:
    # The detected language of one line may not be served, or not be known.
    return error.is_of_the_text or (error.status == 422 and wanted.source is None)
