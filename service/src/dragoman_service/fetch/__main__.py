"""`dragoman fetch`: downloads a model in a thread, and reports progress and errors."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from contextlib import suppress
from pathlib import Path

from pydantic import Field
from pydantic_settings import SettingsConfigDict

from dragoman_contract.http import ENGINE_PORT
from dragoman_service.download import hub, s3
from dragoman_service.download.errors import reason
from dragoman_service.download.transfer import Meter, RemoteFile
from dragoman_service.fetch.startup import describe, served
from dragoman_service.settings import termination_log
from dragoman_system.command_line import (
    CommandLineError,
    CommandSettings,
    configure_logging,
    read_command_line,
)
from dragoman_system.listening import ANY_HOST

log = logging.getLogger("dragoman_service.fetch")

LOG_EVERY_S = 10.0


class Settings(CommandSettings):
    """Options of `dragoman fetch`."""

    model_config = SettingsConfigDict(env_prefix="DRAGOMAN_FETCH_", cli_prog_name="dragoman fetch")

    model: str = Field(pattern=r"^(hf|s3)://.+/.+$", description="hf://ORG/NAME or s3://BUCKET/PREFIX")
    revision: str | None = Field(None, description="commit, tag or branch of a Hugging Face model")
    trust_remote_code: bool = Field(
        False, description="whether the model may run code: modules of its repository, pickled weights"
    )
    list_files: bool = Field(
        False, description="print size, checksum and name of the files, and download nothing"
    )
    cache_dir: Path = Field(
        Path("~/.cache/dragoman"), description="directory for downloads (huggingface/, s3/), shared by pods"
    )
    to: Path | None = Field(
        None, description="symbolic link that is made to the model once it is complete and verified"
    )
    timeout_s: float = Field(
        86_400, gt=0, description="maximum seconds; the next start continues where this one ended"
    )
    host: str = Field(
        default_factory=lambda: os.environ.get("DRAGOMAN_HOST", ANY_HOST),
        description="address of the progress (default DRAGOMAN_HOST, else ::, every address of IPv6 and IPv4)",
    )
    port: int = Field(ENGINE_PORT, ge=0, le=65535, description="port of the progress; 0: any free port")
    termination_log: Path | None = Field(None, description="file for the reason of a failure")


def main(argv: list[str]) -> int:
    """Download a model; `argv` follows `dragoman fetch`.

    Returns:
        0 once the model is there, 2 for wrong settings. After a failure the process ends with status 1, and after
        SIGTERM with 143, without waiting for connections.
    """
    try:
        settings = read_command_line(Settings, argv)
    except CommandLineError as error:
        _report(str(error), termination_log(argv))
        return 2
    configure_logging("warning" if settings.list_files else "info")
    for name in ("httpx", "httpx2", "botocore"):
        logging.getLogger(name).setLevel("WARNING")
    # The first process of a container has no default for SIGTERM. What was received is kept.
    signal.signal(signal.SIGTERM, lambda *_: os._exit(143))
    try:
        if settings.list_files:
            sys.stdout.writelines(map(_line, _files(settings)))
            return 0
        path = _fetched(settings)
        if settings.to is not None:
            link(settings.to, path)
    except Exception as error:
        log.debug("why the download failed", exc_info=error)
        _report(reason(error, settings.model.removeprefix("hf://")), termination_log(argv))
        sys.stderr.flush()
        os._exit(1)
    log.info("%s is complete and verified: %s", settings.model, path)
    return 0


def _files(settings: Settings) -> list[RemoteFile]:
    _prepare_environment(settings)
    scheme, _, name = settings.model.partition("://")
    if scheme == "hf":
        return hub.listed(name, settings.revision, settings.trust_remote_code)
    return s3.listed(settings.model, settings.trust_remote_code)


def _line(file: RemoteFile) -> str:
    checksum = f"{file.checksum.algorithm}:{file.checksum.value}" if file.checksum else "-"
    return f"{file.size} {checksum} {file.name}\n"


def _prepare_environment(settings: Settings) -> None:
    # huggingface_hub reads them on import.
    os.environ.setdefault("HF_HOME", str(settings.cache_dir.expanduser() / "huggingface"))
    os.environ |= {"HF_HUB_DISABLE_TELEMETRY": "1", "HF_HUB_DISABLE_PROGRESS_BARS": "1"}


def _fetched(settings: Settings) -> Path:
    _prepare_environment(settings)
    meter, done = Meter(), threading.Event()
    results: list[Path] = []
    errors: list[Exception] = []

    def work() -> None:
        try:
            results.append(_into_cache(settings, meter))
        except Exception as error:
            errors.append(error)
        done.set()

    with served(settings.host, settings.port, meter.read):
        threading.Thread(target=work, name="fetch", daemon=True).start()
        left_s = settings.timeout_s
        while not done.wait(min(LOG_EVERY_S, left_s)):
            left_s -= LOG_EVERY_S
            if left_s <= 0:
                raise TimeoutError(f"not complete after {settings.timeout_s:g} s ({describe(meter.read())})")
            log.info("%s", describe(meter.read()))
    if errors:
        raise errors[0]
    log.info("received %d bytes", meter.received_bytes)
    return results[0]


def _into_cache(settings: Settings, meter: Meter) -> Path:
    scheme, _, name = settings.model.partition("://")
    if scheme == "hf":
        return hub.fetch(name, settings.revision, settings.trust_remote_code, meter)
    return s3.fetch(settings.model, settings.cache_dir.expanduser(), settings.trust_remote_code, meter)


def link(at: Path, target: Path) -> None:
    """Make or replace a symbolic link at once; relative, so that the volume can be mounted elsewhere."""
    at.parent.mkdir(parents=True, exist_ok=True)
    temporary = at.with_name(f".{at.name}.{os.getpid()}")
    with suppress(FileNotFoundError):
        temporary.unlink()
    temporary.symlink_to(os.path.relpath(target, at.parent))
    temporary.replace(at)


def _report(sentence: str, log_path: Path | None) -> None:
    """One sentence to standard error and to the termination log."""
    sys.stderr.write(f"dragoman fetch: {sentence}\n")
    if log_path is not None:
        with suppress(OSError):
            log_path.write_text(f"{sentence}\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
