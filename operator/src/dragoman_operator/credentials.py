"""Which cluster, and as whom: KUBECONFIG, ~/.kube/config, or the pod's own service account."""

from __future__ import annotations

import os
from pathlib import Path

from kubernetes.aio import client, config

from dragoman_operator.errors import ClusterError

_NAMESPACE_FILE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")


async def configuration() -> client.Configuration:
    """Address and credentials of the cluster, read anew: tokens in files change.

    Raises:
        ClusterError: No cluster is named, or its credentials cannot be read.
    """
    loaded = client.Configuration()
    kubeconfig = _kubeconfig()
    try:
        if kubeconfig:
            await config.load_kube_config(config_file=kubeconfig, client_configuration=loaded)
        else:
            config.load_incluster_config(client_configuration=loaded)
    except (config.ConfigException, OSError, ValueError) as error:
        where = kubeconfig or "the pod's service account"
        raise ClusterError(f"read {where}", f"{error}; set KUBECONFIG or run inside a cluster") from error
    return loaded


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


def _kubeconfig() -> str | None:
    named = os.environ.get("KUBECONFIG")
    if named:
        return named
    usual = Path.home() / ".kube" / "config"
    return str(usual) if usual.exists() else None
