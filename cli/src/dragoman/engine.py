"""An engine pod of this machine for the time of one command: `dragoman serve` on loopback."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import socket
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import httpx

from dragoman_contract.http import READY_PATH

POLL_S = 0.2
TERMINATION_LOG, LOG = "termination-log", "log"
END_S = 30.0
"""For the end after SIGTERM; then SIGKILL."""


PHRASES = {
    "request nvidia.com/gpu, or set device: cpu with a CPU image": "--device cpu uses none",
    "in this pod": "on this machine",
    "the pod ran out of memory while the model was loaded: raise its memory limit": "there was not enough memory "
    "to load the model",
    "give the pod more memory": "free memory",
    "set tokenSecretRef to a Secret with": "set HF_TOKEN to",
    "set tokenSecretRef": "set HF_TOKEN",
    "in podTemplate.env": "in the environment",
    "spec.model.uri": "--model",
    "spec.model.revision": "DRAGOMAN_REVISION",
    "spec.model.trustRemoteCode to true (--trust-remote-code=true)": "DRAGOMAN_TRUST_REMOTE_CODE=true",
    "--trust-remote-code=true (spec.model.trustRemoteCode)": "DRAGOMAN_TRUST_REMOTE_CODE=true",
    "engine.quantization": "DRAGOMAN_QUANTIZATION",
    "kvCacheMemory": "DRAGOMAN_KV_CACHE_MEMORY_BYTES",
}
"""What an engine says of its pod, and what it is for this command."""
OWN_FLAGS = ("model", "prompt-family", "device")
"""Flags of `dragoman serve` that `dragoman translate` has, too; the others are variables."""


class EngineError(Exception):
    """The engine did not start; the message has the end of its log."""


@asynccontextmanager
async def started(model: str, family: str, device: str) -> AsyncIterator[str]:
    """Start an engine, and end it with the block.

    Args:
        model: A directory, or what else `dragoman serve --model` takes.
        family: Prompt family.
        device: `cuda` or `cpu`.

    Yields:
        Its address, once it is ready. That takes as long as the model takes to load.

    Raises:
        EngineError: It ended before.
    """
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = int(free.getsockname()[1])
    with tempfile.TemporaryDirectory(prefix="dragoman-engine-") as directory:
        termination_log = Path(directory) / TERMINATION_LOG
        command = [*_ends_with_this_process(), sys.executable, "-m", "dragoman", "serve", "--model", model]
        command += ["--prompt-family", family, "--device", device, "--host", "127.0.0.1", "--port", str(port)]
        log = os.open(Path(directory) / LOG, os.O_WRONLY | os.O_CREAT)
        # In a session of its own: Ctrl-C is for the command, which then ends the engine.
        process = await asyncio.create_subprocess_exec(
            *(*command, "--termination-log", str(termination_log)),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        os.close(log)
        try:
            url = f"http://127.0.0.1:{port}"
            if not await _ready(url, process):
                reason = _reason_in(Path(directory))
                raise EngineError(f"the engine ended with status {process.returncode}: {reason}")
            yield url
        finally:
            await _end(process)


async def _ready(url: str, process: asyncio.subprocess.Process) -> bool:
    """Wait until it is ready, or has ended."""
    async with httpx.AsyncClient(timeout=5) as http:
        while process.returncode is None:
            with suppress(httpx.TransportError):
                if (await http.get(url + READY_PATH)).is_success:
                    return True
            await asyncio.sleep(POLL_S)
    return False


def _reason_in(directory: Path) -> str:
    for name in (TERMINATION_LOG, LOG):
        file = directory / name
        if file.exists() and (content := file.read_text(errors="replace").strip()):
            return for_this_command(content[-500:])
    return "its log is empty"


def for_this_command(reason: str) -> str:
    """The reason of a failed start, with flags and variables of `dragoman translate` instead of those of a pod."""
    for theirs, ours in PHRASES.items():
        reason = reason.replace(theirs, ours)
    # Fields of spec.engine, such as maxModelLen, and flags.
    reason = re.sub(
        r"\b(?:engine\.)?(?:gpu|max|tensor)(?:[A-Z][a-z]+)+\b",
        lambda found: _variable(re.sub(r"(?=[A-Z])", "-", found[0].removeprefix("engine."))),
        reason,
    )
    return re.sub(
        rf"--(?!(?:{'|'.join(OWN_FLAGS)})\b)([a-z][a-z-]+)", lambda found: _variable(found[1]), reason
    )


def _variable(flag: str) -> str:
    return f"DRAGOMAN_{flag.replace('-', '_').upper()}"


async def _end(process: asyncio.subprocess.Process) -> None:
    if process.returncode is not None:
        return
    process.terminate()
    try:
        await asyncio.wait_for(process.wait(), END_S)
    except TimeoutError:
        process.kill()
        await process.wait()


def _ends_with_this_process() -> list[str]:
    """What makes the kernel end a child with its parent, also after SIGKILL, where util-linux has it."""
    setpriv = shutil.which("setpriv")
    return [setpriv, "--pdeathsig", "TERM"] if setpriv else []
