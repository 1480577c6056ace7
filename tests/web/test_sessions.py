"""Form tokens, and tokens as the configuration writes them."""

from __future__ import annotations

import pytest

from hansard_compiler.errors import ConfigError
from hansard_store.principals.model import ALL_SCOPES, Scope
from hansard_web.app.config import AccessToken, parse_token
from hansard_web.principals.dependencies import FormTokens

KEY = b"k" * 32
CLERK, SENDER = AccessToken("clerk-secret"), AccessToken("sender-secret", frozenset({Scope.INGEST}))


def test_form_tokens_belong_to_one_session() -> None:
    tokens = FormTokens(KEY)

    assert tokens.is_of(tokens.of("a"), "a")
    assert not tokens.is_of(tokens.of("a"), "b")
    assert not tokens.is_of("", "a")
    assert not FormTokens(b"other" * 8).is_of(tokens.of("a"), "a")


def test_a_token_may_name_its_scopes_before_a_colon() -> None:
    assert parse_token("secret:with:colons") == AccessToken("secret:with:colons", ALL_SCOPES)
    assert parse_token("ingest:0123456789").scopes == {Scope.INGEST}
    assert parse_token("read+decide:0123456789").scopes == {Scope.READ, Scope.DECIDE}


@pytest.mark.parametrize("text", ["short", "ingest:short", "with space in it", "nön-äscii-token"])
def test_a_token_that_cannot_be_one_is_refused_at_start(text: str) -> None:
    with pytest.raises(ConfigError):
        parse_token(text)


def test_admin_may_do_everything_and_others_only_what_they_say() -> None:
    assert AccessToken("x", frozenset({Scope.ADMIN})).allows(Scope.DECIDE)
    assert not SENDER.allows(Scope.READ)


def test_a_secret_is_not_shown_in_logs() -> None:
    assert CLERK.secret not in repr(CLERK)
