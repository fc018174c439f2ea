"""Tokens by the router's settings."""

from __future__ import annotations

import asyncio

from dragoman_router.access.accounts import AccountLimits
from dragoman_router.oidc.claims import Expected
from dragoman_router.oidc.issuer import Issuer
from dragoman_router.oidc.tokens import OidcVerifier
from dragoman_router.settings import Settings


def open_tokens(settings: Settings) -> tuple[Issuer, OidcVerifier]:
    """The issuer, which has to be watched, and its tokens; the settings name one."""
    assert settings.oidc_issuer is not None
    clock = asyncio.get_running_loop().time
    issuer = Issuer(settings.oidc_issuer, clock)
    expected = Expected(
        settings.oidc_issuer, settings.oidc_audience, settings.oidc_name_claim, settings.oidc_limits_claim
    )
    limits = {group: AccountLimits(**each.model_dump()) for group, each in settings.oidc_limits.items()}
    return issuer, OidcVerifier(issuer, expected, limits, clock)
