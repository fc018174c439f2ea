"""API keys: from files, as a Secret is mounted; in memory only as hashes.

Each file of the directory is one key; metrics and usage have its name. It contains the key
alone, or JSON: `{"key": "…", "requestsPerS": 10, "charactersPerS": 20000, "characterLimit": 5000000,
"deployments": ["team-a/*"], "fleet": true}`.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Callable
from pathlib import Path

import msgspec

from dragoman_protocols.keys import MAX_KEY_BYTES
from dragoman_router.access.accounts import Account, AccountLimits
from dragoman_router.errors import SettingsError
from dragoman_router.routing.placement import is_scope

MIN_KEY_CHARS = 8
KEY_UNKNOWN = "this API key is not known here"


class _KeyFile(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    key: str
    requests_per_s: float | None = None
    characters_per_s: float | None = None
    character_limit: int | None = None
    burst_s: float = 10.0
    deployments: tuple[str, ...] | None = None
    fleet: bool = False


class Key:
    """One key that is known: its name and its account."""

    __slots__ = ("account", "digest", "name")

    def __init__(self, name: str, digest: bytes, account: Account) -> None:
        self.name, self.digest, self.account = name, digest, account


class KeyRing:
    """All keys."""

    def __init__(self, directory: Path, clock: Callable[[], float]) -> None:
        self._directory = directory
        self._clock = clock
        self._salted = hashlib.blake2b(key=secrets.token_bytes(32), digest_size=32)
        self._keys: dict[bytes, Key] = {}
        self._by_name: dict[str, Key] = {}
        self.accounts: dict[str, Account] = {}
        """By name, those of removed keys included: their usage stays counted."""
        self.load()

    def __len__(self) -> int:
        return len(self._keys)

    def load(self) -> None:
        """Read the files anew; accounts go on.

        Raises:
            SettingsError: A file cannot be understood; what was known before stays.
        """
        found: dict[bytes, tuple[str, AccountLimits]] = {}
        for name, (key, limits) in read_keys(self._directory).items():
            digest = self._digest(key.encode())
            if digest in found:
                raise SettingsError(f"keys: {name} and {found[digest][0]} contain the same key")
            found[digest] = name, limits
        self._keys = {
            digest: Key(name, digest, self._account(name, limits)) for digest, (name, limits) in found.items()
        }
        self._by_name = {key.name: key for key in self._keys.values()}

    def named(self, name: str | None) -> Key | None:
        """The key of a name; None where there is none, or no longer."""
        return None if name is None else self._by_name.get(name)

    def known(self, presented: bytes) -> Key | None:
        """The key that was sent; None where it is not known.

        Keys are found by a salted hash and compared in constant time, so that the time reveals nothing of a key.
        """
        digest = self._digest(presented[:MAX_KEY_BYTES])
        key = self._keys.get(digest)
        return key if key is not None and hmac.compare_digest(key.digest, digest) else None

    def _account(self, name: str, limits: AccountLimits) -> Account:
        account = self.accounts.get(name)
        if account is None:
            account = self.accounts[name] = Account(name, limits, self._clock())
        elif account.limits != limits:
            account.change(limits, self._clock())
        return account

    def _digest(self, key: bytes) -> bytes:
        hashed = self._salted.copy()
        hashed.update(key)
        return hashed.digest()


def read_keys(directory: Path) -> dict[str, tuple[str, AccountLimits]]:
    """The keys and limits of the files of a directory, by name and in its order.

    Raises:
        SettingsError: A file or the directory cannot be read.
    """
    try:
        files = sorted(path for path in directory.iterdir() if not path.name.startswith("."))
        texts = {path.name: path.read_bytes() for path in files if path.is_file()}
    except OSError as error:
        raise SettingsError(f"keys in {directory}: {error.strerror}") from error
    return {name: _parsed(name, text) for name, text in texts.items()}


def _parsed(name: str, text: bytes) -> tuple[str, AccountLimits]:
    if not name.isprintable():
        raise SettingsError(f"keys: the file name {name!a} has to be printable UTF-8")
    stripped = text.strip()
    if stripped.startswith(b"{"):
        try:
            entry = msgspec.json.decode(stripped, type=_KeyFile)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise SettingsError(f"keys: {name} is not understood: {error}") from None
    else:
        try:
            entry = _KeyFile(stripped.decode())
        except UnicodeDecodeError as error:
            raise SettingsError(f"keys: {name} is not UTF-8 (byte {error.start})") from None
    if len(entry.key) < MIN_KEY_CHARS:
        raise SettingsError(f"keys: {name} has fewer than {MIN_KEY_CHARS} characters")
    for rate in (entry.requests_per_s, entry.characters_per_s, entry.character_limit, entry.burst_s):
        if rate is not None and rate <= 0:
            raise SettingsError(f"keys: {name} has a limit that is not positive")
    if entry.deployments is not None and not all(map(is_scope, entry.deployments)):
        raise SettingsError(f"keys: {name}: deployments has to have NAMESPACE/NAME or NAMESPACE/*")
    return entry.key, AccountLimits(
        entry.requests_per_s,
        entry.characters_per_s,
        entry.character_limit,
        entry.burst_s,
        entry.deployments,
        entry.fleet,
    )
