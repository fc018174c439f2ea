"""A real kube-apiserver with its etcd, on loopback, with a certificate, keys and tokens made for it."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from dragoman_devcluster.api.tls import Credentials, credentials, write_kubeconfig, write_private
from dragoman_devcluster.guardian import Guardian
from dragoman_devcluster.options import ClusterOptions
from dragoman_devcluster.ports import free_port
from dragoman_devcluster.servers.server import HOST, ApiServer, service_range

BINARIES = ("kube-apiserver", "etcd")
ISSUER = "https://kubernetes.default.svc"


def find_binaries(environment: Mapping[str, str]) -> dict[str, Path]:
    """The binaries of a real API server that are there: in KUBEBUILDER_ASSETS if set, else in PATH."""
    place = environment.get("KUBEBUILDER_ASSETS") or environment.get("PATH")
    found = {name: shutil.which(name, path=place) for name in BINARIES}
    return {name: Path(path) for name, path in found.items() if path}


def kube_apiserver(options: ClusterOptions, guardian: Guardian, binaries: Mapping[str, Path]) -> ApiServer:
    """An API server of etcd and kube-apiserver, whose files `binaries` has by name."""
    root, port = options.dir.resolve(), options.port or free_port()
    etcd, peer = (f"http://{HOST}:{free_port()}" for _ in range(2))

    def commands() -> dict[str, list[str]]:
        state = root / "api"
        given = credentials(state, HOST)
        _signing_key(state / "service-accounts.key")
        write_private(state / "tokens.csv", f"{given.token},admin,admin,system:masters\n".encode())
        authority = given.certificate_file.read_bytes()
        write_kubeconfig(root / "kubeconfig", f"https://{HOST}:{port}", authority, given.token)
        services = service_range(state, first_octet=10)
        flags = {
            "etcd": etcd_flags(state, etcd, peer),
            "kube-apiserver": [
                *api_flags(state, given, port, etcd, services),
                *audit_flags(options.audit_policy, root / "logs" / "audit.log"),
            ],
        }
        return {name: [str(binaries[name]), *words] for name, words in flags.items()}

    return ApiServer("kube-apiserver", root, guardian, commands)


def etcd_flags(state: Path, client_url: str, peer_url: str) -> list[str]:
    """The command line of etcd. Other members would reach it at `peer_url`; there are none."""
    return [
        f"--data-dir={state / 'etcd'}",
        f"--listen-client-urls={client_url}",
        f"--advertise-client-urls={client_url}",
        f"--listen-peer-urls={peer_url}",
        f"--initial-advertise-peer-urls={peer_url}",
        f"--initial-cluster=default={peer_url}",
        # The data does not outlive a power cut; a local cluster does not have to.
        "--unsafe-no-fsync",
        "--log-level=warn",
    ]


def api_flags(state: Path, given: Credentials, port: int, etcd_url: str, services: str) -> list[str]:
    """The command line of kube-apiserver."""
    return [
        f"--etcd-servers={etcd_url}",
        f"--bind-address={HOST}",
        f"--secure-port={port}",
        # It refuses to announce a loopback address as the endpoint of the Service `kubernetes`.
        "--endpoint-reconciler-type=none",
        f"--tls-cert-file={given.certificate_file}",
        f"--tls-private-key-file={given.key_file}",
        f"--token-auth-file={state / 'tokens.csv'}",
        f"--service-account-key-file={state / 'service-accounts.key'}",
        f"--service-account-signing-key-file={state / 'service-accounts.key'}",
        f"--service-account-issuer={ISSUER}",
        f"--service-cluster-ip-range={services}",
        "--authorization-mode=RBAC",
        "--allow-privileged=true",
        "--profiling=false",
    ]


def audit_flags(policy: Path | None, log: Path) -> list[str]:
    """The part of kube-apiserver's command line that is about its audit log; nothing without a policy file."""
    if policy is None:
        return []
    return [f"--audit-policy-file={policy.resolve()}", f"--audit-log-path={log}", "--audit-log-mode=batch"]


def _signing_key(path: Path) -> Path:
    """The key file at `path`, made on the first call; readable by its owner only."""
    if not path.exists():
        key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        pem, pkcs8 = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
        write_private(path, key.private_bytes(pem, pkcs8, serialization.NoEncryption()))
    return path
