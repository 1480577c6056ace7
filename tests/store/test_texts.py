"""Texts and prefixes: each distinct one once, findable, shared by what continues it."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hansard_compiler.calls import Message, TextPart, ToolCallPart, ToolResultPart
from hansard_store.content.texts import read_message, read_text
from hansard_store.ingest.derived_rows import SpanProjection
from tests.store.maker import StoreMaker, call, message

TALK = [message("system", "be brief"), message("user", "hello"), message("assistant", "hi")]


def say(store: StoreMaker, name: str, messages: Sequence[Message], **fields: Any) -> int:
    made = call(input=messages)
    return store.span(name, projection=SpanProjection("llm", "test", call=made), **fields)


def path(store: StoreMaker, span: int) -> list[str]:
    """Return the texts of a call's input by walking its prefix up."""
    rows = store.db.execute(
        """
        WITH RECURSIVE up (parent, text, depth) AS (
          SELECT parent, text, depth FROM message_prefix
          WHERE id = (SELECT input_prefix FROM call WHERE span = ?)
          UNION ALL
          SELECT node.parent, node.text, node.depth
          FROM up JOIN message_prefix AS node ON node.id = up.parent)
        SELECT body FROM up JOIN text ON text.id = up.text ORDER BY depth
        """,
        (span,),
    ).fetchall()
    return [read_message(store.db, bytes(row[0])).text for row in rows]  # type: ignore[arg-type]


def test_a_conversation_shares_the_nodes_of_what_it_continues(store: StoreMaker) -> None:
    numbers = [say(store, str(turn), TALK[:turn]) for turn in (1, 2, 3)]

    assert store.db.execute("SELECT count(*) FROM message_prefix").get == 3
    assert path(store, numbers[2]) == ["be brief", "hello", "hi"]
    assert path(store, numbers[0]) == ["be brief"]


def test_the_prefix_hash_is_of_the_messages_up_to_it_and_of_nothing_else(
    store: StoreMaker,
) -> None:
    say(store, "one", TALK[:2], run="a")
    say(store, "two", TALK[1:], run="b")
    digest = b""
    for part in TALK[:2]:
        digest = hashlib.sha256(digest + part.hash).digest()[:16]

    rows = store.db.execute("SELECT hash FROM message_prefix WHERE depth = 2").fetchall()
    assert digest in [row[0] for row in rows]
    assert len(rows) == 2


def test_a_message_in_two_runs_is_one_text(store: StoreMaker) -> None:
    say(store, "one", TALK, run="a")
    say(store, "two", TALK, run="b")

    assert store.db.execute("SELECT count(*) FROM text WHERE field = 'message'").get == 3
    assert store.db.execute("SELECT min(first_span), max(first_span) FROM text").get == (1, 1)


def find(store: StoreMaker, words: str) -> list[str]:
    sql = "SELECT rowid FROM text_fts WHERE text_fts MATCH ? ORDER BY rowid"
    found: list[Any] = store.db.execute(sql, (words,)).fetchall()
    return [store.db.execute("SELECT field FROM text WHERE id = ?", (row[0],)).get for row in found]


def test_what_was_said_asked_and_answered_is_found(store: StoreMaker) -> None:
    asked = Message("assistant", (ToolCallPart("1", "search_web", {"query": "weather oslo"}),))
    answered = Message("tool", (ToolResultPart("1", [{"sky": "cloudless"}]),))
    say(store, "one", [message("user", "needle in text"), asked, answered])
    store.span("two", texts=[("span_name", "fetch needle"), ("error", "timeout needle")])

    assert find(store, "needle") == ["message", "span_name", "error"]
    assert find(store, "search_web") == find(store, "oslo") == find(store, "cloudless")
    assert find(store, "oslo") == ["message"]


def test_a_text_of_a_run_is_noted_once_a_run(store: StoreMaker) -> None:
    for name in ("one", "two"):
        store.span(name, run="a", texts=[("error", "same")])
    store.span("three", run="b", texts=[("error", "same")])

    assert store.db.execute("SELECT text, run FROM text_use").fetchall() == [(1, 1), (1, 2)]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(st.lists(st.text(max_size=700), max_size=4))
def test_any_message_is_read_back_as_it_was(store: StoreMaker, texts: list[str]) -> None:
    odd = ToolResultPart(None, {"$content": texts})
    sent = Message("user", (*[TextPart(text) for text in texts], odd))
    say(store, f"span {texts!r}", [sent])

    body = store.db.execute("SELECT body FROM text WHERE hash = ?", (sent.hash,)).get
    assert read_message(store.db, body) == sent


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(st.text(max_size=1500))
def test_any_text_is_read_back_as_it_was(store: StoreMaker, text: str) -> None:
    store.span(f"span {text!r}", texts=[("input", text)])

    digest = hashlib.sha256(b"input\0" + text.encode()).digest()
    body = store.db.execute("SELECT body FROM text WHERE hash = ?", (digest,)).get
    assert read_text(store.db, body) == text
