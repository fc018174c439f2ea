"""A certificate for one machine, and the kubeconfig that trusts it."""

from __future__ import annotations

import base64
import datetime
import ipaddress
import os
import secrets
from dataclasses import dataclass
from pathlib import Path

import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_LIFETIME = datetime.timedelta(days=3650)
_NAMES = ("localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc")


@dataclass(frozen=True)
class Credentials:
    """Files that a TLS server and its clients need, and the bearer token of the administrator."""

    certificate_file: Path
    key_file: Path
    token: str


def credentials(directory: Path, host: str) -> Credentials:
    """The credentials kept in `directory`, made on the first call; the key and the token are private files."""
    directory.mkdir(parents=True, exist_ok=True)
    certificate_file, key_file, token_file = (
        directory / name for name in ("server.crt", "server.key", "token")
    )
    if not certificate_file.exists():
        certificate, key = _issue(host)
        write_private(key_file, key)
        write_private(token_file, secrets.token_urlsafe(32).encode())
        certificate_file.write_bytes(certificate)
    return Credentials(certificate_file, key_file, token_file.read_text())


def write_private(path: Path, content: bytes) -> None:
    """Write a file that only its owner may read, in one step: a reader finds the old content or the new."""
    draft = path.with_name(f"{path.name}.new")
    draft.unlink(missing_ok=True)
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
    draft.replace(path)


def write_kubeconfig(path: Path, url: str, authority: bytes, token: str, namespace: str = "default") -> None:
    """Write a kubeconfig with one context, readable by its owner only; `authority` is a PEM certificate."""
    name = "dragoman-local"
    encoded = base64.b64encode(authority).decode()
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": {"server": url, "certificate-authority-data": encoded}}],
        "users": [{"name": name, "user": {"token": token}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name, "namespace": namespace}}],
        "current-context": name,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    write_private(path, yaml.safe_dump(config, sort_keys=False).encode())


def _issue(host: str) -> tuple[bytes, bytes]:
    """A self-signed certificate for `host` and the usual names, which is its own authority, and its key; as PEM."""
    now = datetime.datetime.now(datetime.UTC)
    key = ec.generate_private_key(ec.SECP256R1())
    names: list[x509.GeneralName] = [x509.DNSName(name) for name in _NAMES]
    addresses = dict.fromkeys(("127.0.0.1", host))
    names += [x509.IPAddress(ipaddress.ip_address(address)) for address in addresses]
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "dragoman-local-api")])
    usage = dict.fromkeys(
        ("content_commitment", "key_encipherment", "data_encipherment", "key_agreement"), False
    )
    usage |= dict.fromkeys(("crl_sign", "encipher_only", "decipher_only"), False)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + _LIFETIME)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.KeyUsage(digital_signature=True, key_cert_sign=True, **usage), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return certificate.public_bytes(pem), private
