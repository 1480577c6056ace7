"""Cookies and form tokens."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hansard_compiler.errors import ConfigError
from hansard_web.sessions import SESSION_S, Sessions
from hansard_web.settings import ALL_SCOPES, Scope, Token, find_token, parse_token

KEY = b"k" * 32
CLERK, SENDER = Token("clerk-secret"), Token("sender-secret", frozenset({Scope.INGEST}))


def test_a_cookie_stands_for_its_token_until_it_expires() -> None:
    sessions = Sessions(KEY, [SENDER, CLERK])
    cookie = sessions.cookie_for(CLERK, now_s=1000)

    assert sessions.find(cookie, now_s=1000 + SESSION_S) is CLERK
    assert sessions.find(cookie, now_s=1001 + SESSION_S) is None


def test_a_cookie_does_not_hold_the_token() -> None:
    assert CLERK.secret not in Sessions(KEY, [CLERK]).cookie_for(CLERK, now_s=1000)


def test_a_cookie_of_a_removed_token_or_another_store_is_worth_nothing() -> None:
    cookie = Sessions(KEY, [CLERK]).cookie_for(CLERK, now_s=1000)

    assert Sessions(KEY, [SENDER]).find(cookie, now_s=1000) is None
    assert Sessions(b"other" * 8, [CLERK]).find(cookie, now_s=1000) is None


@given(st.text())
def test_made_up_cookies_are_refused_without_an_error(cookie: str) -> None:
    assert Sessions(KEY, [CLERK]).find(cookie, now_s=0) is None


def test_a_cookie_with_a_later_expiry_is_forged() -> None:
    sessions = Sessions(KEY, [CLERK])
    expires, _, proof = sessions.cookie_for(CLERK, now_s=1000).partition(".")

    assert sessions.find(f"{int(expires) + 1}.{proof}", now_s=1000) is None


def test_form_tokens_belong_to_one_session() -> None:
    sessions = Sessions(KEY, [CLERK])

    assert sessions.is_form_token(sessions.form_token("a"), "a")
    assert not sessions.is_form_token(sessions.form_token("a"), "b")
    assert not sessions.is_form_token("", "a")


def test_a_token_is_found_by_its_whole_secret_only() -> None:
    assert find_token([CLERK, SENDER], "sender-secret") is SENDER
    assert find_token([CLERK, SENDER], "sender-secre") is None
    assert find_token([], "") is None


def test_a_token_may_name_its_scopes_before_a_colon() -> None:
    assert parse_token("secret:with:colons") == Token("secret:with:colons", ALL_SCOPES)
    assert parse_token("ingest:0123456789").scopes == {Scope.INGEST}
    assert parse_token("read+decide:0123456789").scopes == {Scope.READ, Scope.DECIDE}


@pytest.mark.parametrize("text", ["short", "ingest:short", "with space in it", "nön-äscii-token"])
def test_a_token_that_cannot_be_one_is_refused_at_start(text: str) -> None:
    with pytest.raises(ConfigError):
        parse_token(text)


def test_admin_may_do_everything_and_others_only_what_they_say() -> None:
    assert Token("x", frozenset({Scope.ADMIN})).allows(Scope.DECIDE)
    assert not SENDER.allows(Scope.READ)


def test_a_secret_is_not_shown_in_logs() -> None:
    assert CLERK.secret not in repr(CLERK)
