"""Settings of all unit tests."""

from tests.support.few_authorities import trust_one_authority

trust_one_authority()
