"""What settling a session asks the store is answered from an index."""

from __future__ import annotations

from hansard_store.ingest import session_logs
from hansard_store.ingest.session_logs import SessionLog
from tests.store.maker import StoreMaker, span_id, trace_id
from tests.store.plans import QueryPlans

SESSION = "codex s"


def noted(
    store: StoreMaker,
    time_ns: int,
    *,
    entry_type: str = "note",
    kind: str = "",
    key: str = "",
    lacks_prompt: bool = True,
    trace: str | None = "a",
) -> SessionLog:
    """Store a log record and what it is in its session."""
    with store.batch():
        log = store.log(
            f"{entry_type} at {time_ns}, lacks prompt {lacks_prompt}",
            span="s",
            run=trace or "none",
            at_s=time_ns,
        )
        row = SessionLog(
            log=log,
            session=SESSION,
            time_ns=time_ns,
            start_ns=time_ns - 1,
            entry_type=entry_type,
            kind=kind,
            key=key,
            sequence="",
            lacks_prompt=lacks_prompt,
            trace_id=None if trace is None else trace_id(trace),
        )
        session_logs.add_session_log(store.ingest, row)
    return row


def test_a_record_belongs_to_the_last_prompt_that_was_not_after_it(store: StoreMaker) -> None:
    for time_ns, trace in ((10, "a"), (20, "b")):
        noted(store, time_ns, entry_type="prompt", lacks_prompt=False, trace=trace)

    asked = {time: session_logs.last_prompt(store.db, SESSION, time) for time in (9, 10, 19, 20)}

    assert asked == {9: None, 10: trace_id("a"), 19: trace_id("a"), 20: trace_id("b")}
    assert session_logs.next_prompt_ns(store.db, SESSION, 10) == 20
    assert session_logs.next_prompt_ns(store.db, SESSION, 20) is None
    assert session_logs.is_first_prompt(store.db, SESSION, 10)
    assert not session_logs.is_first_prompt(store.db, SESSION, 20)
    assert session_logs.last_prompt(store.db, "codex other", 30) is None


def test_only_records_that_name_no_prompt_are_loose(store: StoreMaker) -> None:
    wanted = [noted(store, time_ns) for time_ns in (5, 6)]
    noted(store, 6, lacks_prompt=False)
    noted(store, 7)

    assert session_logs.logs_without_prompt(store.db, SESSION, from_ns=5, before_ns=7) == wanted


def test_a_note_before_the_prompt_is_no_beginning(store: StoreMaker) -> None:
    noted(store, 1)
    noted(store, 5, entry_type="prompt", lacks_prompt=False)
    noted(store, 9)

    assert session_logs.bounds_of(store.db, trace_id("a")) == (4, 9)
    assert session_logs.bounds_of(store.db, trace_id("b")) == (None, None)


def test_a_turn_is_given_away_once(store: StoreMaker) -> None:
    with store.batch():
        given = [
            session_logs.claim_turn(store.ingest, trace_id("turn"), trace_id(to)) for to in "ab"
        ]

    assert given == [True, False]
    assert session_logs.claimed_by(store.db, trace_id("turn")) == trace_id("a")
    assert session_logs.is_sent_trace(store.db, trace_id("a"))
    assert not session_logs.is_sent_trace(store.db, trace_id("b"))


def test_a_sent_span_is_found_by_what_it_tells_and_a_made_one_is_not(store: StoreMaker) -> None:
    told = {"request_id": "r1", "session.id": "s"}
    store.span("sent", run="a", attributes=told)
    store.span("made", run="b", attributes={"request_id": "r2"}, flags=16384)

    def found(*values: str, session: str = "", role: str = "other") -> object:
        keys = ("request_id", "other")
        return session_logs.sent_spans_with(store.db, keys, values, role=role, session=session)

    assert found("r1") == found("r0", "r1") == [(trace_id("a"), span_id("sent"))]
    assert found("r1", session="s") == found("r1")
    assert found("r2") == found() == found("r1", session="t") == found("r1", role="llm") == []


def test_what_is_noted_of_a_record_goes_with_it(store: StoreMaker) -> None:
    row = noted(store, 5)
    store.ingest.execute("DELETE FROM log_record WHERE id = ?", (row.log,))

    assert session_logs.find_session_log(store.db, row.log) is None


def test_no_question_reads_a_whole_table(store: StoreMaker) -> None:
    row = noted(store, 5, entry_type="step", kind="llm", key="k")
    store.span("s", run="a")
    plans = QueryPlans()
    a = trace_id("a")

    with plans.watch(store.db):
        session_logs.find_session_log(store.db, row.log)
        session_logs.last_prompt(store.db, SESSION, 5)
        session_logs.next_prompt_ns(store.db, SESSION, 5)
        session_logs.is_first_prompt(store.db, SESSION, 5)
        session_logs.logs_without_prompt(store.db, SESSION, from_ns=0, before_ns=9)
        session_logs.logs_of_trace(store.db, a)
        session_logs.logs_of_types(store.db, a, ("step", "prompt"))
        session_logs.logs_with_key(store.db, "k", "llm")
        session_logs.agent_span(store.db, a)
        session_logs.calls_logged(store.db, SESSION, from_ns=0, to_ns=9)
        session_logs.calls_of_session(store.db, SESSION, dialect="d", from_ns=0, to_ns=9)
        session_logs.calls_of_run(store.db, 1, dialect="d", from_ns=0, to_ns=9)
        session_logs.bounds_of(store.db, a)
        session_logs.earliest_log(store.db, a)
        session_logs.claimed_by(store.db, a)
        session_logs.is_sent_trace(store.db, a)
        session_logs.made_spans(store.db, a)
        session_logs.made_span(store.db, a, span_id("s"))
        session_logs.last_key(store.db, a, "llm")
        session_logs.sent_spans_with(store.db, ("request_id",), ("k",), role="llm")
        session_logs.records_of_step(store.db, a, span_id("s"), limit=10)
        session_logs.record_of(store.db, row.log)
        session_logs.is_repeated(store.db, row.log)

    assert len({sql for _, sql in plans.lines}) >= 18
    assert plans.scans() == []
