"""Address and credentials of the cluster: KUBECONFIG, ~/.kube/config, or the pod's own service account."""

from __future__ import annotations

import base64
import json
import os
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import yaml
from kubernetes.aio import client, config

from dragoman_kube.errors import ConfigurationError

_NO_KUBECONFIG = (TypeError, AttributeError, LookupError)
"""What the client raises where a YAML file has another structure."""

_NAMESPACE_FILE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")


async def configuration(
    kubeconfig: str | Path | None = None, context: str | None = None
) -> client.Configuration:
    """Read address and credentials. Tokens in files change: read them again when they are refused.

    Without `kubeconfig` the cluster is found as by kubectl; without `context` the current one is taken.

    Raises:
        ConfigurationError: There is no cluster to connect to, or its credentials cannot be read.
    """
    loaded = client.Configuration()
    path = kubeconfig or _kubeconfig()
    if path and not _exists(str(path)):
        raise ConfigurationError(
            f"read {path}", "there is no such file; set KUBECONFIG or run inside a cluster"
        )
    try:
        if path:
            await config.load_kube_config(config_file=str(path), context=context, client_configuration=loaded)
        else:
            config.load_incluster_config(client_configuration=loaded)
    except (config.ConfigException, OSError, ValueError, yaml.YAMLError, *_NO_KUBECONFIG) as error:
        source = path or "the pod's service account"
        what = "it is no kubeconfig" if isinstance(error, _NO_KUBECONFIG) else " ".join(str(error).split())
        reason = f"{what.rstrip('.')}; set KUBECONFIG or run inside a cluster"
        raise ConfigurationError(f"read {source}", reason) from error
    # aiohttp would read .netrc and the environment's proxies again for each request, in a thread.
    loaded.client_session_kwargs = {"trust_env": False}
    loaded.proxy = loaded.proxy or _proxy(loaded.host)
    return loaded


@dataclass(frozen=True)
class ServiceAccount:
    """The account of a pod."""

    namespace: str
    name: str
    uid: str


def service_account(loaded: client.Configuration) -> ServiceAccount | None:
    """The account that the token is for; None for credentials of other kinds.

    The API server verifies the token; here only its claims are read.

    Source: https://kubernetes.io/docs/reference/access-authn-authz/service-accounts-admin/#bound-service-account-tokens
    """
    token = str(loaded.api_key.get("BearerToken", "")).partition(" ")[2]
    payload = token.split(".")[1] if token.count(".") == 2 else ""
    try:
        bound = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))["kubernetes.io"]
        account = bound["serviceaccount"]
        return ServiceAccount(bound["namespace"], account["name"], account["uid"])
    except (ValueError, KeyError, TypeError):
        return None


def _proxy(url: str) -> str | None:
    """The proxy to a server by HTTPS_PROXY, HTTP_PROXY and NO_PROXY; None without one."""
    parts = urlsplit(url)
    return None if proxy_bypass(parts.netloc) else getproxies().get(parts.scheme)


def own_namespace() -> str:
    """The namespace of this pod, else of the kubeconfig's context, else ``default``."""
    kubeconfig = _kubeconfig()
    if kubeconfig is None:
        return _NAMESPACE_FILE.read_text().strip() if _NAMESPACE_FILE.exists() else "default"
    try:
        _, context = config.list_kube_config_contexts(kubeconfig)
    except config.ConfigException:
        return "default"
    return str(context.get("context", {}).get("namespace") or "default")


def _exists(kubeconfig: str) -> bool:
    # It may be a list, as KUBECONFIG may.
    return any(Path(file).exists() for file in kubeconfig.split(os.pathsep))


def _kubeconfig() -> str | None:
    named = os.environ.get("KUBECONFIG")
    if named:
        return named
    default = Path.home() / ".kube" / "config"
    return str(default) if default.exists() else None
