"""Rebuild: what is derived can be dropped and made again, equal, while ingest goes on."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from hansard_collector.derivation.rebuild import rebuild
from hansard_store.database.connections import open_for_maintenance
from hansard_store.database.upkeep_slices import Pace
from hansard_store.errors import StoppedError
from hansard_store.maintenance.deletion import delete_run
from hansard_store.verification.integrity import verify_store
from tests.collector.compile_maker import Told, compiled_files, tell
from tests.collector.ingesting import (
    TRACE,
    Ingesting,
    conversation,
    fixture_requests,
    is_rebuild_due,
    log,
    logs,
    span,
    traces,
)
from tests.collector.sessions.maker import picture, request
from tests.collector.sessions.test_order import SESSIONS
from tests.collector.sessions.test_with_traces import logged_turn, traced_turn

OTHER = bytes(reversed(range(16)))
CHAT = {
    "gen_ai.operation.name": "chat",
    "gen_ai.request.model": "gpt-4o",
    "gen_ai.usage.input_tokens": 10,
}

# What can be made again, by names that do not depend on the order in which it was made.
DERIVED = {
    "span": """
        SELECT id, trace_id, span_id, side, run, parent_span_id, name, label, kind, start_ns,
          end_ns, sort_ns, status, role, dialect, flags, resource, scope, agent_name, tool_name,
          tool_call_id, model, tokens_input, tokens_output, tokens_cache_read, tokens_cache_write,
          tokens_reasoning, cost_usd_nano, summary, notes, derived_version FROM span""",
    "run": """
        SELECT id, trace_id, synthetic, pinned, root_span, root_rank, name, agent_name, domain,
          status, times_rank, started_ns, ended_ns, last_received_ns, span_count, step_count,
          open_count, error_count, model_calls, tool_calls, tokens_input, tokens_output,
          tokens_cache_read, tokens_cache_write, tokens_reasoning, cost_usd_nano,
          conversation_id, user_id,
          first_input, last_output, agent_span, domain_span, conversation_span, user_span,
          first_input_span, last_output_span, has_receipts, notes, work_count,
          prompt_id, last_prompt_id, group_id, user_goal, user_goal_span FROM run""",
    "run_facet": "SELECT kind, value, run FROM run_facet",
    "call": """
        SELECT span, run, candidate, counted, operation, provider, request_model, response_model,
          response_id, finish_reason, of_input.hash, of_output.hash, input_is_delta, tokens_input,
          tokens_output, tokens_cache_read, tokens_cache_write, tokens_reasoning, cost_usd_nano,
          cost_source, first_token_ms
        FROM call
        LEFT JOIN message_prefix AS of_input ON of_input.id = input_prefix
        LEFT JOIN message_prefix AS of_output ON of_output.id = output_prefix""",
    "error_step": "SELECT * FROM error_step",
    "usage_sum": "SELECT * FROM usage_sum",
    "usage_below": "SELECT * FROM usage_below",
    "text": "SELECT hash, field, role, match_hash, body FROM text",
    "text_use": "SELECT hash, run FROM text_use JOIN text ON text.id = text",
    "text_fts": "SELECT hash FROM text_fts_docsize JOIN text USING (id)",
    "message_prefix": "SELECT hash, depth FROM message_prefix",
    "tool_event": "SELECT run, call_id, name, requested, ran FROM tool_event",
    "compilation": "SELECT * FROM compilation",
    "receipt": "SELECT * FROM receipt",
    "span_link": "SELECT * FROM span_link",
    "payload_use": "SELECT * FROM payload_use",
    "attribute_fts": "SELECT term, doc FROM temp.attribute_terms",
}
# Everything but what a run's number and pin are, and where its spans belong.
SPOIL = """
DELETE FROM call;
DELETE FROM error_step;
DELETE FROM usage_sum;
DELETE FROM usage_below;
DELETE FROM run_facet;
DELETE FROM text_use;
DELETE FROM message_prefix;
DELETE FROM text;
DELETE FROM content_use WHERE run < 0 AND run % 2 = 0;
DELETE FROM tool_event;
DELETE FROM receipt;
DELETE FROM compilation;
DELETE FROM span_link;
DELETE FROM payload_use;
INSERT INTO text_fts (text_fts) VALUES ('delete-all');
INSERT INTO attribute_fts (attribute_fts) VALUES ('delete-all');
UPDATE setting SET value = value + 1 WHERE name = 'epoch';
UPDATE span SET label = 'spoilt', kind = 9, start_ns = 1, end_ns = 2, sort_ns = 3, status = 9,
  role = 'spoilt', dialect = 'spoilt', agent_name = 'spoilt', tool_name = 'spoilt',
  tool_call_id = 'spoilt', model = 'spoilt', tokens_input = 7, cost_usd_nano = 7,
  summary = 'spoilt', notes = 'spoilt', name = 'spoilt';
UPDATE run SET root_span = NULL, root_rank = 0, name = 'spoilt', agent_name = 'spoilt',
  domain = 'spoilt', user_goal = 'spoilt', status = 'spoilt', times_rank = 0, started_ns = 1,
  ended_ns = 1,
  step_count = 99, open_count = 99, error_count = 99, model_calls = 99, tool_calls = 99,
  tokens_input = 99, cost_usd_nano = 99, conversation_id = 'spoilt', user_id = 'spoilt',
  first_input = 'spoilt', last_output = 'spoilt', notes = '{"spoilt": 1}';
"""


def derived(ingesting: Ingesting) -> dict[str, list[Any]]:
    connection = open_for_maintenance(ingesting.folder)
    connection.execute(
        "CREATE VIRTUAL TABLE temp.attribute_terms USING fts5vocab (main, attribute_fts, instance)"
    )
    found = {
        table: sorted(connection.execute(sql).fetchall(), key=repr)
        for table, sql in DERIVED.items()
    }
    connection.close()
    return found


def spoil(ingesting: Ingesting) -> None:
    connection = open_for_maintenance(ingesting.folder)
    connection.pragma("foreign_keys", value=False)
    connection.execute(SPOIL)
    connection.close()


def record_everything(ingesting: Ingesting) -> None:
    """Send all recordings, and what they lack: start records, richer reports, repairs, logs."""
    for signal, body in fixture_requests():
        ingesting.send_bytes(signal, body)
    ingesting.send(traces([span(1, duration_s=None), span(2, 1, attributes=CHAT)]))
    ingesting.send(logs([log(2, event_name="gen_ai.user.message", text="hello")]))
    odd = span(3, 1, start_s=-1e9, dropped_attributes_count=2)
    odd.links.add(trace_id=b"bad")
    odd.links.add(trace_id=OTHER, span_id=b"12345678")
    ingesting.send(traces([odd, span(1, attributes=CHAT | {"session.id": "talk"})]))
    ingesting.send(traces([span(3, 1, attributes=CHAT | {"hansard.ref": f"sha256:{'ab' * 32}"})]))
    talk = {"gen_ai.input.messages": conversation(5), "gen_ai.conversation.id": "c"}
    ingesting.send(traces([span(4, 2, attributes=CHAT | talk, kind=2)]))
    tell(ingesting, Told(compiled_files()))


@pytest.mark.covers("CO-05")
def test_all_that_is_derived_can_be_dropped_and_is_made_again_equal(ingesting: Ingesting) -> None:
    record_everything(ingesting)
    before = derived(ingesting)
    assert all(before.values())

    spoil(ingesting)
    assert all(derived(ingesting)[table] != before[table] for table in before)
    rebuilt = rebuild(ingesting.folder)

    after = derived(ingesting)
    for table in before:
        assert after[table] == before[table], table
    assert rebuilt.spans == len(before["span"])
    assert rebuilt.runs == len(before["run"])
    assert verify_store(ingesting.folder).findings == []


def test_runs_made_of_log_records_are_made_again(ingesting: Ingesting) -> None:
    for agent, records in SESSIONS.values():
        ingesting.send(request(records, agent))
    ingesting.send(traced_turn())
    ingesting.send(request(logged_turn()))
    before = sorted(picture(ingesting), key=repr)
    rows = _counts(ingesting)
    connection = open_for_maintenance(ingesting.folder)
    # As an older version might have taken them.
    connection.execute(
        "UPDATE session_log SET entry_type = 'note', kind = '', key = '' WHERE log % 3 = 0"
    )
    connection.close()

    rebuild(ingesting.folder, pace=Pace(hold_s=0, pause_s=0))

    assert sorted(picture(ingesting), key=repr) == before
    assert _counts(ingesting) == rows
    assert verify_store(ingesting.folder).findings == []


def _counts(ingesting: Ingesting) -> dict[str, int]:
    # Texts of what a step was until its last record came are left to gc.
    return {
        table: len(rows)
        for table, rows in derived(ingesting).items()
        if not table.startswith(("text", "message_prefix"))
    }


def test_a_rebuild_of_a_sound_store_changes_nothing_that_is_derived(ingesting: Ingesting) -> None:
    record_everything(ingesting)
    before = derived(ingesting)

    rebuild(ingesting.folder, pace=Pace(hold_s=0, pause_s=0))

    assert derived(ingesting) == before


def test_pins_and_the_time_of_the_last_news_are_no_business_of_a_rebuild(
    ingesting: Ingesting,
) -> None:
    ingesting.send(traces([span(1)]))
    connection = open_for_maintenance(ingesting.folder)
    connection.execute("UPDATE run SET pinned = 1")
    connection.close()
    before = ingesting.one("SELECT pinned, last_received_ns, change_seq, version FROM run")

    rebuild(ingesting.folder)

    after = ingesting.one("SELECT pinned, last_received_ns, change_seq, version FROM run")
    assert after[:2] == before[:2]
    assert after[2] > before[2]
    assert after[3] > before[3]


def test_only_what_an_older_version_derived_is_made_again(ingesting: Ingesting) -> None:
    ingesting.send(traces([span(1, attributes=CHAT)]))
    ingesting.send(traces([span(1, attributes=CHAT, trace_id=OTHER)]))
    assert not is_rebuild_due(ingesting.folder)
    connection = open_for_maintenance(ingesting.folder)
    connection.execute("UPDATE span SET derived_version = 0, role = 'other' WHERE id = 2")
    connection.execute("DELETE FROM call WHERE span = 2")
    connection.close()
    assert is_rebuild_due(ingesting.folder)

    rebuilt = rebuild(ingesting.folder, only_old=True)

    assert (rebuilt.runs, rebuilt.spans) == (1, 1)
    assert ingesting.all("SELECT role FROM span") == [("llm",), ("llm",)]
    assert not is_rebuild_due(ingesting.folder)


class _StopAfter(threading.Event):
    """Tells a pace to stop in its nth pause, doing something in each."""

    def __init__(self, pauses: int, do: Callable[[int], object] = lambda _: None) -> None:
        super().__init__()
        self.pauses = 0
        self._stop_after = pauses
        self._do = do

    def wait(self, timeout: float | None = None) -> bool:
        self.pauses += 1
        self._do(self.pauses)
        return self.pauses >= self._stop_after


@pytest.mark.parametrize("pauses", [1, 2, 7, 40, 90])
def test_a_rebuild_that_was_cut_off_goes_on_where_it_was(ingesting: Ingesting, pauses: int) -> None:
    record_everything(ingesting)
    before = derived(ingesting)
    spoil(ingesting)

    with pytest.raises(StoppedError):
        rebuild(ingesting.folder, pace=Pace(hold_s=0, pause_s=0, stop=_StopAfter(pauses)))
    assert is_rebuild_due(ingesting.folder)
    rebuild(ingesting.folder)

    assert derived(ingesting) == before


def test_spans_that_come_during_a_rebuild_are_derived_once(ingesting: Ingesting) -> None:
    """The same spans, sent before, or in the pauses of a rebuild of the run they belong to."""
    early, late = [span(n, 1, attributes=CHAT) for n in range(1, 9)], range(9, 40)
    ingesting.send(traces(early))

    def send(number: int) -> None:
        if number < len(late):
            ingesting.send(traces([span(late[number], 1, attributes=CHAT)]))
            ingesting.send(logs([log(number % 8 + 1, text=f"log {number}")]))

    stop = _StopAfter(10**6, send)
    rebuild(ingesting.folder, pace=Pace(hold_s=0, pause_s=0, stop=stop))
    assert stop.pauses > 8
    during = derived(ingesting)
    rebuild(ingesting.folder)

    assert derived(ingesting) == during
    assert ingesting.one("SELECT sum(counted) FROM call") == ingesting.one(
        "SELECT model_calls FROM run"
    )


def test_a_run_that_is_deleted_during_a_rebuild_is_left_out(ingesting: Ingesting) -> None:
    ingesting.send(traces(span(n, 1) for n in range(1, 30)))
    ingesting.send(traces([span(1, trace_id=OTHER)]))

    def delete(number: int) -> None:
        if number == 3:
            connection = open_for_maintenance(ingesting.folder)
            delete_run(connection, TRACE, reason="by hand")
            connection.close()

    stop = _StopAfter(10**6, delete)
    rebuild(ingesting.folder, pace=Pace(hold_s=0, pause_s=0, stop=stop))

    assert ingesting.one("SELECT count(*) FROM span") == 1
    assert not is_rebuild_due(ingesting.folder)


def test_progress_is_told_by_runs(ingesting: Ingesting) -> None:
    for number in range(3):
        ingesting.send(traces([span(1, trace_id=bytes([number + 1]) * 16)]))
    told: list[tuple[int, int]] = []

    rebuild(ingesting.folder, progress=lambda done, total: told.append((done, total)))

    assert told == [(0, 3), (1, 3), (2, 3), (3, 3)]
