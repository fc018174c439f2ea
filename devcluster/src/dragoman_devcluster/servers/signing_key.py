"""The key that signs service account tokens of a real API server."""

from __future__ import annotations

from pathlib import Path

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from dragoman_devcluster.api.tls import write_private


def signing_key(path: Path) -> Path:
    """The key file at `path`, made on the first call; readable by its owner only."""
    if not path.exists():
        key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        pem, pkcs8 = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
        write_private(path, key.private_bytes(pem, pkcs8, serialization.NoEncryption()))
    return path
