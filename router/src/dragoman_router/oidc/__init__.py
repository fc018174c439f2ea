"""Bearer tokens of an OpenID Connect issuer, beside API keys."""
