"""Builds the images with buildah and runs them as the pods do: without Docker, a registry or a daemon.

DRAGOMAN_IMAGE_STORE names a folder that keeps base image and images between runs; by default nothing is kept.
"""

import ast
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOOLS = ("buildah", "debootstrap", "unshare")
BASE = "localhost/python:3.11"
DEBIAN = "bookworm"
PACKAGES = "ca-certificates,python3,python3-pip,python3-venv,libpython3.11-dev"
"""What of `python:3.11-slim` the Dockerfiles and vLLM's compiler use; the headers are for kernels."""
USER = 65532
FIGURES: list[str] = []
"""Sizes and times that the tests measured, for the summary."""


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the figures."""
    if FIGURES:
        terminalreporter.section("images")
        for figure in FIGURES:
            terminalreporter.write_line(figure)


def missing() -> str:
    """Why images cannot be built here; empty where they can."""
    if absent := [tool for tool in TOOLS if shutil.which(tool) is None]:
        return f"no {' and no '.join(absent)}"
    return "" if os.geteuid() == 0 else "building images needs root"


@pytest.fixture(scope="session", autouse=True)
def _can_build() -> None:
    if reason := missing():
        pytest.skip(reason)


@dataclass(frozen=True)
class Image:
    """One built image, mounted.

    Args:
        files: Root of its file system, which the tests may read.
        settings: `Env`, `Entrypoint`, `Cmd`, `User` of its configuration.
        size_bytes: Of its file system.
    """

    files: Path
    settings: dict[str, object]
    size_bytes: int

    @property
    def site_packages(self) -> Path:
        return self.files / "opt/venv/lib/python3.11/site-packages"

    def packages(self) -> set[str]:
        """Our own packages in it."""
        return {path.name for path in self.site_packages.glob("dragoman*") if path.suffix != ".dist-info"}

    def distributions(self) -> set[str]:
        """Names of everything that pip installed, lower case, with dashes."""
        return {
            path.name.split("-")[0].lower().replace("_", "-")
            for path in self.site_packages.glob("*.dist-info")
        }

    @contextmanager
    def started(
        self, *arguments: str, writable: tuple[str, ...] = ("/tmp",), log: Path, **env: str
    ) -> Iterator[subprocess.Popen[bytes]]:
        """Run the entrypoint as the chart's pods do, until the block ends.

        A read-only root file system, user 65532, no capabilities and no new privileges; `writable` are the
        pod's emptyDirs. The network is this machine's.
        """
        variables = [*self.settings["Env"], *(f"{key}={value}" for key, value in env.items())]  # type: ignore[misc]
        for path in writable:
            (self.files / path.lstrip("/")).mkdir(parents=True, exist_ok=True)
        mounts = "; ".join(
            f"mount -t tmpfs -o mode=1777,uid={USER},gid={USER} tmpfs {self.files}{path}" for path in writable
        )
        script = f"""set -e
            mount --bind {self.files} {self.files}
            mount -o remount,bind,ro {self.files}
            mount --rbind /dev {self.files}/dev
            mount -t proc proc {self.files}/proc
            mount -t sysfs -o ro sysfs {self.files}/sys
            {mounts}
            exec chroot {self.files} setpriv --reuid {USER} --regid {USER} --clear-groups \
                --no-new-privs --bounding-set=-all --inh-caps=-all env --ignore-environment "$@" """
        command = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", script, "sh"]
        with log.open("wb") as output:
            process = subprocess.Popen(
                [*command, *variables, *self.settings["Entrypoint"], *arguments],  # type: ignore[misc]
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                yield process
            finally:
                # unshare ignores SIGTERM; the group has the container's first process in it.
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGTERM)
                try:
                    process.wait(30)
                except subprocess.TimeoutExpired:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()


class Builder:
    """buildah with a store of its own.

    Args:
        store: Folder of the store.
    """

    def __init__(self, store: Path) -> None:
        self._store = store
        driver = os.environ.get("STORAGE_DRIVER", "vfs")
        self._buildah = [
            "buildah", "--storage-driver", driver, "--root", str(store / "root"), "--runroot", str(store / "run")
        ]  # fmt: skip
        self._containers: list[str] = []

    def run(self, *arguments: str) -> str:
        """One buildah command; its standard output.

        Raises:
            pytest.fail.Exception: It failed; the message holds the end of its output.
        """
        done = subprocess.run([*self._buildah, *arguments], capture_output=True, text=True, cwd=ROOT)
        if done.returncode != 0:
            pytest.fail(
                f"buildah {' '.join(arguments)}:\n{(done.stdout + done.stderr)[-4000:]}", pytrace=False
            )
        return done.stdout.strip()

    def has(self, name: str) -> bool:
        """Whether the store holds this image."""
        return name in self.run("images", "--all", "--format", "{{.Name}}:{{.Tag}}").split()

    def base(self) -> None:
        """Make Debian with Python under the name that `--build-arg PYTHON` gives the Dockerfiles."""
        if self.has(BASE):
            return
        tree = self._store / "base"
        subprocess.run(
            ["debootstrap", "--variant=minbase", f"--include={PACKAGES}", DEBIAN, str(tree), mirror()],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        for archive in (tree / "var/cache/apt/archives").glob("*.deb"):
            archive.unlink()
        (tree / "usr/local/bin/python").symlink_to("/usr/bin/python3.11")
        container = self.run("from", "scratch")
        self.run("copy", "--quiet", container, str(tree), "/")
        self.run("config", "--env", "PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", container)
        self.run("commit", "--quiet", "--rm", container, BASE)
        shutil.rmtree(tree)

    def build(self, dockerfile: str, tag: str, *options: str) -> Image:
        """Build, mount and measure one image; with a kept store, only what is not there yet.

        Args:
            dockerfile: Its path.
            tag: Name and tag.
            options: More of `buildah build`, such as `--target`.
        """
        self.base()
        began = time.monotonic()
        name = f"localhost/{tag}"
        kept = self.has(name)
        if not kept:
            self.run(
                "build", "--isolation", "chroot", "--format", "docker", "--ignorefile", ".dockerignore",
                "--build-arg", f"PYTHON={BASE}", *self._pip(), *options, "--file", dockerfile, "--tag", name, ".",
            )  # fmt: skip
        took_s = time.monotonic() - began
        container = self.run("from", "--pull-never", name)
        self._containers.append(container)
        files = Path(self.run("mount", container))
        settings = json.loads(self.run("inspect", "--type", "image", name))["Docker"]["config"]
        size = int(subprocess.check_output(["du", "-sxB1", str(files)], text=True).split()[0])
        how = "kept from before" if kept else f"built in {took_s:.0f} s"
        FIGURES.append(f"{tag}: {size / 1e6:.0f} MB, {how}")
        return Image(files, settings, size)

    def _pip(self) -> list[str]:
        """This machine's pip configuration as a file, and the folders it names, as volumes of the build alone."""
        listed = subprocess.check_output([sys.executable, "-m", "pip", "config", "list"], text=True)
        options = {
            match[1]: ast.literal_eval(match[2])
            for match in re.finditer(r"^(?:global\.|:env:\.)([\w-]+)=(.*)$", listed, re.M)
        }
        file = self._store / "pip.conf"
        file.write_text(
            "[global]\n" + "".join(f"{key} = {' '.join(value.split())}\n" for key, value in options.items())
        )
        volumes = {f"{file}:/etc/pip.conf:ro"}
        for word in " ".join(options.values()).split():
            # An index in a folder links to files beside itself.
            path = Path(word.removeprefix("file://")).parent if word.startswith("file://") else Path(word)
            if path.is_absolute() and path.exists():
                volumes.add(f"{path}:{path}:ro")
        return [argument for volume in sorted(volumes) for argument in ("--volume", volume)]

    def close(self) -> None:
        """Remove the containers; the images stay in the store."""
        for container in self._containers:
            self.run("umount", container)
            self.run("rm", container)


def mirror() -> str:
    """The Debian mirror that this machine's apt uses.

    Raises:
        pytest.skip.Exception: apt has none.
    """
    found = subprocess.run(
        ["apt-get", "indextargets", "--format", "$(SITE) $(RELEASE) $(CODENAME)"], capture_output=True, text=True
    )  # fmt: skip
    sites = [line.split()[0] for line in found.stdout.splitlines() if DEBIAN in line.split()[1:]]
    if not sites:
        pytest.skip(f"apt has no mirror of Debian {DEBIAN}")
    return sites[0]


@pytest.fixture(scope="session")
def builder(_can_build: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Builder]:
    kept = os.environ.get("DRAGOMAN_IMAGE_STORE")
    store = Path(kept) if kept else tmp_path_factory.mktemp("images")
    store.mkdir(parents=True, exist_ok=True)
    made = Builder(store)
    try:
        yield made
    finally:
        made.close()
        if not kept:
            shutil.rmtree(store)


@pytest.fixture(scope="session")
def operator_image(builder: Builder) -> Image:
    return builder.build("operator/Dockerfile", "dragoman-operator:test")


@pytest.fixture(scope="session")
def router_image(builder: Builder) -> Image:
    return builder.build("router/Dockerfile", "dragoman-router:test")


@pytest.fixture(scope="session")
def engine_image(builder: Builder) -> Image:
    return builder.build("service/Dockerfile.cpu", "dragoman-engine:test")


@pytest.fixture(scope="session")
def gpu_build_stage(builder: Builder) -> Image:
    return builder.build("service/Dockerfile", "dragoman-engine-wheel:test", "--target", "build")


@pytest.fixture
def figures() -> list[str]:
    return FIGURES


@pytest.fixture
def wait_for() -> Callable[[subprocess.Popen[bytes], Path, Callable[[], object], float], None]:
    """Wait until a condition holds, while the process lives; the failure shows the end of its log."""

    def waited(
        process: subprocess.Popen[bytes], log: Path, holds: Callable[[], object], within_s: float
    ) -> None:
        deadline = time.monotonic() + within_s
        while not holds():
            if process.poll() is not None or time.monotonic() > deadline:
                pytest.fail(f"not reached (exit {process.poll()}):\n{log.read_text()[-4000:]}", pytrace=False)
            time.sleep(0.2)

    return waited
