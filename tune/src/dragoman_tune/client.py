"""Sends translations to a pod: `POST /translate`."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import aiohttp

from dragoman_tune.requests import Answer, SampleRequest

TIMEOUT_S = 120.0
"""Longer than any server under test holds a request; a load that waits longer says nothing."""

TIMING = re.compile(r"(queue|compute);dur=([0-9.]+)")
"""Source: https://www.w3.org/TR/server-timing/ ; durations are milliseconds."""


@asynccontextmanager
async def connections() -> AsyncIterator[aiohttp.ClientSession]:
    """Connections for as many requests as a load wants, kept alive between them."""
    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0), timeout=aiohttp.ClientTimeout(total=TIMEOUT_S)
    ) as session:
        yield session


async def translate(
    session: aiohttp.ClientSession, url: str, request: SampleRequest, **options: Any
) -> Answer:
    """One translation by a pod; `options` are further members of the request."""
    body = {
        "text": request.text,
        "source_lang": request.source_lang,
        "target_lang": request.target_lang,
        **options,
    }
    return await post(session, f"{url}/translate", body)


async def post(session: aiohttp.ClientSession, url: str, body: Mapping[str, object]) -> Answer:
    """Post JSON and read the whole answer; what fails becomes an error in a word or two."""
    try:
        async with session.post(url, json=body) as answer:
            content = await answer.read()
            if answer.status != 200:
                return Answer(error=f"status {answer.status}")
            times_s = {
                name: float(ms) / 1000 for name, ms in TIMING.findall(answer.headers.get("Server-Timing", ""))
            }
            return Answer(times_s.get("queue"), times_s.get("compute"), content=content)
    except TimeoutError:
        return Answer(error="timeout")
    except (aiohttp.ClientError, OSError) as error:
        return Answer(error=type(error).__name__)
