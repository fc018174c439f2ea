"""The Deployment and its pods: an init container that downloads the model, and one that serves it, both confined."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from dragoman_contract.http import ENGINE_PORT, ENGINE_PORT_NAME, LIVE_PATH, READY_PATH, STARTUP_PATH
from dragoman_contract.routing import LAME_DUCK_S
from dragoman_kube.kinds import DEPLOYMENT
from dragoman_operator.api.fields import seconds
from dragoman_operator.api.labels import ENGINE_CONTAINER, FETCH_CONTAINER, child, labels, selector
from dragoman_operator.api.pods import PROGRESS_MARGIN_S
from dragoman_operator.api.v1alpha1 import TranslationDeployment
from dragoman_operator.observed.drift import digest
from dragoman_operator.resources.model import (
    CACHE_MOUNT,
    MODEL_MOUNT,
    fetched_model,
    is_fetched,
    model_source,
)
from dragoman_operator.resources.sizes import TMP_LIMIT, cache_limit, requests, shm_limit

ENGINE_USER = 65532
"""The user `nonroot` of distroless images; also the group that owns mounted volumes."""
_USERS: Mapping[str, object] = {
    "runAsUser": ENGINE_USER,
    "runAsGroup": ENGINE_USER,
    "fsGroup": ENGINE_USER,
    "fsGroupChangePolicy": "OnRootMismatch",
}
START_PERIOD_S = 2
"""Period of the startup probe: short, because a pod is ready only after it has passed."""
STOP_MARGIN_S = 15
"""Time between the end of the drain and SIGKILL, in which the engine frees its GPU."""
GLOSSARY_VOLUME = "glossary"
PRE_STOP_S = 5
"""Time before SIGTERM, in which every node's proxy removes the pod. An exec hook, because Kubernetes has the hook
`sleep` only from 1.30."""


def start_attempts(td: TranslationDeployment) -> int:
    """failureThreshold of the startup probe."""
    return math.ceil(seconds(td.spec.rollout.start_timeout) / START_PERIOD_S)


def deployment(
    td: TranslationDeployment,
    replicas: int,
    strategy: Mapping[str, object],
    template: Mapping[str, Any],
) -> dict[str, Any]:
    """The Deployment."""
    start_s = start_attempts(td) * START_PERIOD_S * (2 if is_fetched(td) else 1)
    return child(
        DEPLOYMENT,
        td,
        spec={
            "replicas": replicas,
            "selector": {"matchLabels": selector(td.name)},
            "strategy": dict(strategy),
            "progressDeadlineSeconds": start_s + PROGRESS_MARGIN_S,
            "revisionHistoryLimit": 3,
            "template": dict(template),
        },
    )


def pod_template(td: TranslationDeployment, image: str) -> dict[str, Any]:
    """The Deployment's `template`; any change of it replaces the pods."""
    extra = td.spec.pod_template
    template_metadata: dict[str, Any] = {"labels": {**extra.labels, **labels(td)}}
    if extra.annotations:
        template_metadata["annotations"] = dict(extra.annotations)
    return {"metadata": template_metadata, "spec": _pod_spec(td, image)}


def source_digest(td: TranslationDeployment, image: str) -> str:
    """Digest of what `pod_template` depends on; `image` may be the operator's."""
    fields = {name: value for name, value in td.pod_fields.items() if name != "image"}
    source = {"spec": fields, "image": image}
    asleep = {"sleepAfterS": _sleep_after_s(td), "turns": _turns_secret(td)}
    return digest(source | {name: value for name, value in asleep.items() if value is not None})


def _pod_spec(td: TranslationDeployment, image: str) -> dict[str, Any]:
    extra = td.spec.pod_template
    optional = {
        "nodeSelector": dict(extra.node_selector),
        "tolerations": list(extra.tolerations),
        "affinity": extra.affinity,
        "topologySpreadConstraints": list(extra.topology_spread_constraints),
        "runtimeClassName": extra.runtime_class_name,
        "priorityClassName": extra.priority_class_name,
        "schedulerName": extra.scheduler_name,
        "imagePullSecrets": [{"name": secret.name} for secret in td.spec.image_pull_secrets],
    }
    return {
        "serviceAccountName": td.name,
        "automountServiceAccountToken": False,
        # A Service called "dragoman" would otherwise set DRAGOMAN_PORT, which the engine reads.
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": _grace_s(td),
        "securityContext": {
            "runAsNonRoot": True,
            **(_USERS if extra.security_context is None else {}),
            "seccompProfile": {"type": "RuntimeDefault"},
            **(extra.security_context or {}),
        },
        **({"initContainers": [literal(_fetch_container(td, image))]} if is_fetched(td) else {}),
        "containers": [literal(_container(td, image))],
        "volumes": _volumes(td),
        **{key: value for key, value in optional.items() if value},
    }


def literal(container: Mapping[str, Any]) -> dict[str, Any]:
    """The container with its dollar signs doubled, so that it gets its arguments and variables as they are here.

    A kubelet replaces ``$(NAME)`` by a variable and ``$$`` by ``$`` in `command`, `args` and the values of `env`.

    Source: https://pkg.go.dev/k8s.io/kubernetes/third_party/forked/golang/expansion
    """
    escaped = {name: [_doubled(word) for word in container[name]] for name in ("command", "args")}
    env = [
        {name: _doubled(value) if name == "value" else value for name, value in variable.items()}
        for variable in container["env"]
    ]
    return {**container, **escaped, "env": env}


def _doubled(text: str) -> str:
    return text.replace("$", "$$")


def _grace_s(td: TranslationDeployment) -> int:
    rollout = td.spec.rollout
    lame_duck_s = int(LAME_DUCK_S) if rollout.lame_duck is None else seconds(rollout.lame_duck)
    return PRE_STOP_S + lame_duck_s + seconds(rollout.drain_timeout) + STOP_MARGIN_S


def _container(td: TranslationDeployment, image: str) -> dict[str, Any]:
    written: dict[str, Any] = {
        "name": ENGINE_CONTAINER,
        "image": image,
        "imagePullPolicy": td.spec.image_pull_policy,
        "command": ["dragoman"],
        "args": command_line(td),
        # The model is there already, and an engine needs no token.
        "env": _environment(td, has_token=not is_fetched(td)),
        "ports": [{"name": ENGINE_PORT_NAME, "containerPort": ENGINE_PORT, "protocol": "TCP"}],
        "startupProbe": _probe(
            STARTUP_PATH, periodSeconds=START_PERIOD_S, timeoutSeconds=2, failureThreshold=start_attempts(td)
        ),
        "readinessProbe": _probe(READY_PATH, periodSeconds=5, timeoutSeconds=3, failureThreshold=2),
        # A minute: a long prefill must not fail the probe.
        "livenessProbe": _probe(LIVE_PATH, periodSeconds=10, timeoutSeconds=5, failureThreshold=6),
        "lifecycle": {"preStop": {"exec": {"command": ["sleep", str(PRE_STOP_S)]}}},
        **_CONFINED,
        "volumeMounts": _mounts(td),
    }
    written["resources"] = _resources(td)
    return written


def _resources(td: TranslationDeployment) -> dict[str, dict[str, str]]:
    amounts = {"limits": td.spec.resources.limits, "requests": requests(td.spec)}
    return {
        kind: {name: str(quantity) for name, quantity in listed.items()}
        for kind, listed in amounts.items()
        if listed
    }


def _fetch_container(td: TranslationDeployment, image: str) -> dict[str, Any]:
    """The init container: `dragoman fetch`.

    Its requests and limits are the engine's without devices: they add nothing to the pod's, and change neither its
    class of service nor what a quota requires.
    """
    resources = {
        kind: {name: amount for name, amount in listed.items() if "/" not in name}
        for kind, listed in _resources(td).items()
    }
    model = td.spec.model
    options: dict[str, Option] = {
        "model": model.uri,
        "revision": model.revision,
        "trust-remote-code": "true" if model.trust_remote_code else None,
        "cache-dir": CACHE_MOUNT,
        "to": fetched_model(td),
        "timeout-s": seconds(td.spec.rollout.start_timeout),
        "port": ENGINE_PORT,
        "termination-log": TERMINATION_LOG,
    }
    return {
        "name": FETCH_CONTAINER,
        "image": image,
        "imagePullPolicy": td.spec.image_pull_policy,
        "command": ["dragoman"],
        "args": ["fetch", *_flags(options)],
        "env": _environment(td, has_token=True, is_init=True),
        **_CONFINED,
        "volumeMounts": _with(
            td.spec.pod_template.volume_mounts,
            "mountPath",
            [{"name": "tmp", "mountPath": "/tmp"}, {"name": "cache", "mountPath": CACHE_MOUNT}],
        ),
        "resources": {kind: listed for kind, listed in resources.items() if listed},
    }


def _environment(
    td: TranslationDeployment, *, has_token: bool, is_init: bool = False
) -> list[dict[str, Any]]:
    # The root file system is read-only, and libraries write below HOME.
    entries: dict[str, dict[str, Any]] = {"HOME": {"name": "HOME", "value": "/tmp"}}
    token = td.spec.model.token_secret_ref
    if has_token and token:
        entries["HF_TOKEN"] = {
            "name": "HF_TOKEN",
            "valueFrom": {"secretKeyRef": {"name": token.name, "key": token.key}},
        }
    if not is_init:
        entries |= {
            name: {
                "name": name,
                # Optional: without it, a pod starts by itself.
                "valueFrom": {
                    "secretKeyRef": {"name": start_cache_secret(td.name), "key": key, "optional": True}
                },
            }
            for name, key in START_CACHE_KEYS.items()
        }
        if secret := _turns_secret(td):
            reference = {"secretKeyRef": {"name": secret, "key": "url"}}
            entries[TURNS_URL] = {"name": TURNS_URL, "valueFrom": reference}
    for variable in td.spec.pod_template.env:
        entries[variable.name] = variable.model_dump(by_alias=True, exclude_none=True)
    return list(entries.values())


TURNS_URL = "DRAGOMAN_TURNS_URL"

START_CACHE_KEYS = {"DRAGOMAN_START_CACHE_URL": "url", "DRAGOMAN_START_CACHE_SECRET": "secret"}
"""Variables of the pod, and the keys of the Secret that has their values."""


def start_cache_secret(name: str) -> str:
    """Name of the Secret with which pods of a TranslationDeployment recognise each other."""
    return f"{name}-start-cache"


def _probe(path: str, **timing: int) -> dict[str, Any]:
    return {"httpGet": {"path": path, "port": ENGINE_PORT_NAME}, **timing}


def _mounts(td: TranslationDeployment) -> list[dict[str, Any]]:
    mounts: list[dict[str, Any]] = [
        {"name": "tmp", "mountPath": "/tmp"},
        {"name": "shm", "mountPath": "/dev/shm"},
        {"name": "cache", "mountPath": CACHE_MOUNT},
    ]
    if model_source(td.spec.model.uri).volume:
        mounts.append({"name": "model", "mountPath": MODEL_MOUNT, "readOnly": True})
    if td.spec.glossary:
        # The whole directory: a kubelet never updates a file that is mounted by subPath.
        mounts.append({"name": GLOSSARY_VOLUME, "mountPath": GLOSSARY_MOUNT, "readOnly": True})
    return _with(td.spec.pod_template.volume_mounts, "mountPath", mounts)


def _with(
    added: Sequence[Mapping[str, Any]], key: str, own: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """The operator's own volumes or mounts and those of the spec, which replace own ones of the same `key`."""
    return [dict(each) for each in {each.get(key): each for each in (*own, *added)}.values()]


def _volumes(td: TranslationDeployment) -> list[dict[str, Any]]:
    cache = td.spec.model.cache
    kept: dict[str, Any] = {"emptyDir": {"sizeLimit": cache_limit(td.spec)}}
    if cache.persistent_volume_claim:
        kept = {"persistentVolumeClaim": {"claimName": cache.persistent_volume_claim}}
    volumes: list[dict[str, Any]] = [
        {"name": "tmp", "emptyDir": {"sizeLimit": TMP_LIMIT}},
        {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": shm_limit(td.spec)}},
        {"name": "cache", **kept},
    ]
    if model := model_source(td.spec.model.uri).volume:
        volumes.append(model)
    if glossary := td.spec.glossary:
        # The engine reloads it when it changes. A hash of it among the annotations would replace warm pods for
        # every term, and require the operator to read ConfigMaps.
        key = glossary.config_map_key_ref.key
        source = {"name": glossary.config_map_key_ref.name, "items": [{"key": key, "path": key}]}
        volumes.append({"name": GLOSSARY_VOLUME, "configMap": source})
    return _with(td.spec.pod_template.volumes, "name", volumes)


GLOSSARY_MOUNT = "/etc/dragoman/glossary"
TERMINATION_LOG = "/dev/termination-log"

_CONFINED: Mapping[str, Any] = {
    "terminationMessagePath": TERMINATION_LOG,
    "terminationMessagePolicy": "FallbackToLogsOnError",
    "securityContext": {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    },
}

Option = str | int | float | None

_POLICIES = {"FirstComeFirstServed": "fcfs", "ShortestFirst": "shortest"}
_SPLITS = {"Lines": "lines", "Sentences": "sentences", "NoNewlines": "no-lines", "None": "none"}
"""Values of the spec, and of the pod's option."""


def command_line(td: TranslationDeployment) -> list[str]:
    """Arguments of the command `dragoman`; fields that are not set are left out, so that the engine's defaults apply.

    Returns:
        Strings such as ``["serve", "--model", "org/name", …]``, in a fixed order.
    """
    model, engine = td.spec.model, td.spec.engine
    fetched = is_fetched(td)
    options: dict[str, Option] = {
        "model": fetched_model(td) if fetched else model_source(model.uri).argument,
        "revision": None if fetched else model.revision,
        "trust-remote-code": "true" if model.trust_remote_code else None,
        "served-name": td.name,
        "prompt-family": model.prompt_family,
        "prompt-template": model.prompt_template,
        "languages": _json([entry.model_dump(mode="json") for entry in td.spec.languages]),
        "device": engine.device,
        "dtype": engine.dtype,
        "max-num-seqs": engine.max_num_seqs,
        "max-num-batched-tokens": engine.max_num_batched_tokens,
        "max-model-len": engine.max_model_len,
        "gpu-memory-utilization": engine.gpu_memory_utilization,
        "kv-cache-memory-bytes": engine.kv_cache_memory_bytes,
        "tensor-parallel-size": engine.tensor_parallel_size,
        "quantization": engine.quantization,
        "engine-args": _json(engine.extra_args) if engine.extra_args else None,
        **_serving(td),
        "port": ENGINE_PORT,
        "drain-timeout-s": seconds(td.spec.rollout.drain_timeout),
        "termination-log": TERMINATION_LOG,
        "cache-dir": CACHE_MOUNT,
    }
    return ["serve", *_flags(options)]


def _flags(options: Mapping[str, Option]) -> list[str]:
    pairs = [(f"--{name}", str(value)) for name, value in options.items() if value is not None]
    return [part for pair in pairs for part in pair]


def _serving(td: TranslationDeployment) -> Mapping[str, Option]:
    """Options for which the pod has a default."""
    engine, admission, translation = td.spec.engine, td.spec.admission, td.spec.translation
    glossary = td.spec.glossary
    return {
        "scheduling-policy": _POLICIES.get(engine.scheduling_policy or ""),
        "stall-timeout-s": _seconds(engine.stall_timeout),
        "sleep-after-s": _sleep_after_s(td),
        "max-queued-sequences": admission.max_queued_sequences,
        "max-queued-tokens": admission.max_queued_tokens,
        "deadline-aware-admission": _flag(admission.deadline_aware),
        "request-timeout-s": _seconds(admission.request_timeout),
        "unready-when-overloaded": _flag(admission.unready_when_overloaded),
        "split": _SPLITS.get(translation.split or ""),
        "translation-cache-bytes": translation.cache_bytes,
        "glossary": f"{GLOSSARY_MOUNT}/{glossary.config_map_key_ref.key}" if glossary else None,
        "otlp-endpoint": td.spec.tracing.otlp_endpoint,
        "lame-duck-s": _seconds(td.spec.rollout.lame_duck),
    }


def _sleep_after_s(td: TranslationDeployment) -> int | None:
    scaling = td.spec.autoscaling
    return None if scaling is None else scaling.sleep_after_s


def _turns_secret(td: TranslationDeployment) -> str | None:
    scaling = td.spec.autoscaling
    return None if scaling is None or scaling.turns_secret_ref is None else scaling.turns_secret_ref.name


def _seconds(duration: str | None) -> int | None:
    return None if duration is None else seconds(duration)


def _flag(value: bool | None) -> str | None:
    return None if value is None else str(value).lower()


def _json(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))
