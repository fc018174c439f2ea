"""What a bearer token has to be: signed by a key of the issuer, for this audience, valid now.

Source: RFC 7519, RFC 8725 (best current practices) and OpenID Connect Discovery 1.0.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jwt

from dragoman_protocols.errors import TokenRefusedError

log = logging.getLogger(__name__)

ALGORITHMS: Mapping[str, tuple[str, ...]] = {
    "RSA": ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    "EC": ("ES256", "ES384", "ES512"),
    "OKP": ("EdDSA",),
}
"""By type of key: those of public keys alone. A token's header does not choose another type."""
MAX_TOKEN_BYTES = 16 * 1024
MAX_NAME_CHARS = 128
MAX_SIGNING_KEYS = 64
LEEWAY_S = 30
"""Difference between the clocks of issuer and router."""


class UnknownSigningKeyError(Exception):
    """The token names a signing key that is not known; the issuer may have a new one."""


@dataclass(frozen=True, slots=True)
class SigningKey:
    """A public key of the issuer.

    Args:
        algorithms: For which it may be used.
        key: As PyJWT takes it.
    """

    algorithms: tuple[str, ...]
    key: Any


SigningKeys = Mapping[str | None, SigningKey]
"""By `kid`; None: the one key of an issuer that names none."""


@dataclass(frozen=True, slots=True)
class Expected:
    """What a token has to have.

    Args:
        issuer: Its `iss`.
        audiences: Of which `aud` has at least one.
        name_claim: Claim with the caller's name.
        limits_claim: Claim whose values name limits; None: none does.
    """

    issuer: str
    audiences: tuple[str, ...]
    name_claim: str = "sub"
    limits_claim: str | None = None


@dataclass(frozen=True, slots=True)
class Caller:
    """Whom a token is of.

    Args:
        name: Value of the name claim.
        groups: Values of the limits claim.
        expires_s: Unix seconds.
    """

    name: str
    groups: tuple[str, ...]
    expires_s: float


def signing_keys(listed: list[Any]) -> dict[str | None, SigningKey]:
    """The usable keys of a JSON Web Key Set: public ones for signatures."""
    found: dict[str | None, SigningKey] = {}
    for entry in listed[:MAX_SIGNING_KEYS]:
        if not isinstance(entry, dict) or entry.get("use", "sig") != "sig":
            continue
        algorithms = ALGORITHMS.get(str(entry.get("kty")), ())
        if "alg" in entry:
            algorithms = tuple(each for each in algorithms if each == entry["alg"])
        kid = entry.get("kid")
        if not algorithms or not isinstance(kid, str | None):
            continue
        try:
            read = jwt.PyJWK(entry)
        except jwt.PyJWTError as error:
            log.warning("a signing key of the issuer is not usable: %.200s", error)
            continue
        if entry["kty"] != "RSA":
            # Its curve allows one.
            algorithms = tuple(each for each in algorithms if each == read.algorithm_name)
        found[kid] = SigningKey(algorithms, read.key)
    return found


def verified(token: bytes, keys: SigningKeys, expected: Expected) -> Caller:
    """Whom a token is of. Takes 0.1 to 0.5 ms, most of it the signature.

    Raises:
        UnknownSigningKeyError: Its key is not among `keys`.
        TokenRefusedError: It is not valid here; the message has the reason and never a part of the token.
    """
    if len(token) > MAX_TOKEN_BYTES:
        raise TokenRefusedError(f"the token is longer than {MAX_TOKEN_BYTES} bytes")
    try:
        header = jwt.get_unverified_header(token)
        algorithm, kid = header.get("alg"), header.get("kid")
        if "crit" in header:
            raise TokenRefusedError("the token has critical headers (crit), which are not supported")
        if kid not in keys:
            raise UnknownSigningKeyError
        if algorithm not in keys[kid].algorithms:
            raise TokenRefusedError("the token is signed with an algorithm that its key is not for")
        claims = jwt.decode(
            token,
            keys[kid].key,
            algorithms=[algorithm],
            audience=expected.audiences,
            issuer=expected.issuer,
            leeway=LEEWAY_S,
            options={"require": ["exp", "iss", "aud"]},
        )
        return _caller(claims, expected)
    except (TokenRefusedError, UnknownSigningKeyError):
        raise
    except jwt.PyJWTError as error:
        raise TokenRefusedError(_reason(error, expected)) from None
    except Exception as error:
        # The bytes are any client's: each error of a decoder means that the token is not valid.
        log.debug("a token cannot be read: %s", type(error).__name__)
        raise TokenRefusedError("the token cannot be read; send a JSON Web Token") from None


def _caller(claims: Mapping[str, Any], expected: Expected) -> Caller:
    name = claims.get(expected.name_claim)
    if not isinstance(name, str) or not name.isprintable() or not 0 < len(name) <= MAX_NAME_CHARS:
        raise TokenRefusedError(
            f"the token's claim {expected.name_claim} has to be a name of 1 to {MAX_NAME_CHARS} printable characters"
        )
    groups = () if expected.limits_claim is None else claims.get(expected.limits_claim, ())
    listed = [groups] if isinstance(groups, str) else groups
    if not isinstance(listed, list | tuple):
        listed = ()
    return Caller(name, tuple(each for each in listed if isinstance(each, str)), float(claims["exp"]))


def _reason(error: jwt.PyJWTError, expected: Expected) -> str:
    match error:
        case jwt.ExpiredSignatureError():
            return f"the token has expired; get a new one from {expected.issuer}"
        case jwt.ImmatureSignatureError():
            return "the token is not valid yet; compare the clocks of its issuer and of this service"
        case jwt.InvalidAudienceError():
            return f"the token is not for this service: aud has to be {' or '.join(expected.audiences)}"
        case jwt.InvalidIssuerError():
            return f"the token is of another issuer; get one from {expected.issuer}"
        case jwt.MissingRequiredClaimError():
            return f"the token has no claim {error.claim}"
        case jwt.InvalidSignatureError():
            return "the token's signature is not valid"
    return "the token cannot be read; send a JSON Web Token"
