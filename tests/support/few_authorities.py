"""For tests that reach no server but their own."""

import os
from pathlib import Path


def trust_one_authority() -> None:
    """Contexts of TLS trust an authority whose key exists no more, unless they are given others.

    Each client makes a context, and reading the system's authorities takes it 20 ms of CPU.
    """
    os.environ.setdefault("SSL_CERT_FILE", str(Path(__file__).with_name("authority.pem")))
