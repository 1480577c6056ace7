"""What hooks tell of a session is one run with what the session sends itself, in any order."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from pathlib import Path
from random import Random
from typing import Any

import pytest
from google.protobuf.message import Message
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord

from hansard_collector.derivation.rebuild import rebuild
from hansard_store.heartbeat import hook_rates
from tests.collector.ingesting import START_NS, TRACE, Ingesting, pairs, span, traces
from tests.collector.sessions.maker import (
    SESSION,
    at_ns,
    claude,
    only_run,
    picture,
    request,
    runs_of,
    steps_of,
    tools_of,
)
from tests.collector.sessions.scenes import claude_turn
from tests.collector.sessions.test_with_traces import traced_turn

S = 1_000_000_000


def hook(event: str, at_s: float, *, session: str = SESSION, **sent: Any) -> LogRecord:
    """Return a record as `hansard hook` makes it."""
    record = LogRecord(
        time_unix_nano=at_ns(at_s),
        observed_time_unix_nano=at_ns(at_s),
        severity_number=9,  # type: ignore[arg-type]  # enum by number
        event_name=f"hansard.hook.{event}",
        attributes=pairs({"session.id": session} | sent),
    )
    record.body.CopyFrom(AnyValue(string_value=record.event_name))
    return record


def hooked(*records: LogRecord, agent: str = "claude-code") -> ExportLogsServiceRequest:
    made = request(records, agent)
    made.resource_logs[0].scope_logs[0].scope.name = "hansard.hooks"
    return made


def call(number: int, at_s: float, command: str, *, score: float | None = None) -> list[LogRecord]:
    """Return the records before and after a call of one second."""
    known = {"tool_use_id": f"toolu_{number}", "tool_name": "Bash"}
    given = {"tool_input": f'{{"command": "{command}"}}'}
    facts: dict[str, Any] = {}
    if score is not None:
        facts = {"hansard.hook.score": score, "hansard.hook.warned": score >= 0.8}
    kind = "pre_tool_use" if score is None else "warned" if score >= 0.8 else "evaluated"
    return [
        hook(kind, at_s, **known, **given, **facts),
        hook("post_tool_use", at_s + 1, **known, **given, tool_response='{"stdout": "ok"}',
             success=True),
    ]  # fmt: skip


def session() -> list[LogRecord]:
    """A session that only hooks tell."""
    return [
        hook("session_start", 0, source="startup"),
        hook("prompt", 1, prompt="Clean up"),
        *call(1, 2, "git status", score=0.04),
        *call(2, 4, "git push --force", score=0.92),
        hook("stop", 6, last_assistant_message="Done."),
        hook("session_end", 7, reason="exit"),
    ]


@pytest.mark.covers("DI-16")
def test_a_session_that_only_hooks_tell_is_one_run_with_a_step_for_each_call(
    ingesting: Ingesting,
) -> None:
    ingesting.send(hooked(*session()))

    run = only_run(ingesting)
    assert (run.agent_name, run.conversation_id) == ("claude-code", SESSION)
    assert (run.started_ns, run.ended_ns) == (at_ns(0), at_ns(7))
    assert (run.tool_calls, run.error_count) == (2, 0)
    assert (run.first_input, run.last_output) == ("Clean up", "Done.")
    tools = tools_of(ingesting, run)
    assert [one.tool.arguments for one in tools if one.tool] == [
        {"command": "git status"},
        {"command": "git push --force"},
    ]
    assert [one.tool.result for one in tools if one.tool] == [{"stdout": "ok"}] * 2
    assert [row[1:3] for row, _ in steps_of(ingesting, run)[1:]] == [
        (at_ns(2), at_ns(3)),
        (at_ns(4), at_ns(5)),
    ]


def test_the_start_of_a_session_alone_is_a_run(ingesting: Ingesting) -> None:
    ingesting.send(hooked(hook("session_start", 0)))

    assert only_run(ingesting).conversation_id == SESSION


def test_a_call_that_failed_is_an_error_and_one_that_never_ended_is_a_step(
    ingesting: Ingesting,
) -> None:
    failed = hook("post_tool_use", 2, tool_use_id="a", tool_name="Bash", success=False,
                  error="exit status 1")  # fmt: skip
    denied = hook("warned", 3, tool_use_id="b", tool_name="Bash", tool_input='{"command": "x"}')

    ingesting.send(hooked(failed, denied))

    run = only_run(ingesting)
    assert (run.tool_calls, run.error_count) == (2, 1)


def test_any_order_of_records_makes_the_same_run(tmp_path: Path) -> None:
    seen = []
    for seed in range(4):
        store = Ingesting(tmp_path / str(seed))
        records = session()
        Random(seed).shuffle(records)
        for record in records:
            store.send(hooked(record))
        seen.append([run[:-1] for run in picture(store)])  # each store has a key of its own
        store.close()

    assert all(one == seen[0] for one in seen)
    assert len(seen[0]) == 1


def hooked_turn() -> list[LogRecord]:
    """What hooks tell of the turn that `claude_turn` logs: its tool runs from 5.3 to 6 s."""
    known = {"tool_use_id": "toolu_1prompt-1", "tool_name": "Bash"}
    given = {"tool_input": '{"command": "pytest -q"}'}
    return [
        hook("session_start", -5),
        hook("evaluated", 5.3, **known, **given, **{"hansard.hook.score": 0.05}),
        hook("post_tool_use", 6, **known, **given, tool_response='{"stdout": "1 failed"}',
             success=True),
        hook("stop", 14.5, last_assistant_message="Fixed it."),
    ]  # fmt: skip


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_a_session_that_sends_logs_too_is_one_run(
    ingesting: Ingesting, order: Sequence[int]
) -> None:
    both: list[Message] = [request(claude_turn()), hooked(*hooked_turn())]
    for index in order:
        ingesting.send(both[index])

    run = only_run(ingesting)
    assert (run.model_calls, run.tool_calls) == (3, 1)
    assert run.started_ns == at_ns(0)  # the session was open before, and nothing was done
    [tool] = tools_of(ingesting, run)
    assert tool.tool is not None
    assert tool.tool.result == {"stdout": "1 failed"}


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_a_session_whose_prompt_was_not_logged_is_one_run(
    ingesting: Ingesting, order: Sequence[int]
) -> None:
    logged = [one for one in claude_turn() if "user_prompt" not in str(one)]
    both: list[Message] = [request(logged), hooked(*hooked_turn())]
    for index in order:
        ingesting.send(both[index])

    assert (only_run(ingesting).model_calls, only_run(ingesting).tool_calls) == (3, 1)


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_a_session_that_sends_traces_too_is_one_run(
    ingesting: Ingesting, order: Sequence[int]
) -> None:
    both: list[Message] = [traced_turn(), hooked(*hooked_turn())]
    for index in order:
        ingesting.send(both[index])

    run = only_run(ingesting)
    assert (run.run_id, run.synthetic) == (TRACE.hex(), False)
    assert (run.model_calls, run.tool_calls, run.step_count) == (1, 1, 3)
    [tool] = tools_of(ingesting, run)
    assert tool.tool is not None
    assert tool.tool.arguments == {"command": "pytest -q"}
    assert tool.tool.result == {"stdout": "1 failed"}


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_a_session_that_sends_traces_and_logs_is_one_run(
    ingesting: Ingesting, order: Sequence[int]
) -> None:
    three: list[Message] = [traced_turn(), request(claude_turn()[:5]), hooked(*hooked_turn())]
    for index in order:
        ingesting.send(three[index])

    run = only_run(ingesting)
    assert (run.run_id, run.tool_calls) == (TRACE.hex(), 1)


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_spans_of_an_agent_that_nobody_described_are_joined_by_the_session(
    ingesting: Ingesting, order: Sequence[int]
) -> None:
    sent = traces(
        [
            span(1, name="invoke_agent x", start_s=0, duration_s=9, attributes={
                "gen_ai.operation.name": "invoke_agent", "gen_ai.conversation.id": SESSION}),
        ]
    )  # fmt: skip
    both: list[Message] = [sent, hooked(*session(), agent="x")]
    for index in order:
        ingesting.send(both[index])

    assert only_run(ingesting).run_id == TRACE.hex()


def test_records_of_hooks_that_come_one_by_one_among_logs_count_once(tmp_path: Path) -> None:
    seen = []
    for seed in range(4):
        store = Ingesting(tmp_path / str(seed))
        sent: list[Message] = [request([one]) for one in claude_turn()]
        sent += [hooked(one) for one in hooked_turn()]
        Random(seed).shuffle(sent)
        for one in sent:
            store.send(one)
        seen.append([run[:-1] for run in picture(store)])  # each store has a key of its own
        store.close()

    assert all(one == seen[0] for one in seen)
    assert len(seen[0]) == 1


def test_two_prompts_of_a_session_are_two_runs_with_the_calls_of_each(ingesting: Ingesting) -> None:
    ingesting.send(hooked(*call(1, 2, "one"), *call(2, 102, "two")))
    first = claude("user_prompt", 1, prompt="first")
    second = claude("user_prompt", 101, turn="prompt-2", prompt="second")
    ingesting.send(request([first, second]))

    assert [run.tool_calls for run in runs_of(ingesting)] == [1, 1]


def test_a_rebuild_makes_the_same_run(ingesting: Ingesting) -> None:
    ingesting.send(hooked(*hooked_turn()))
    ingesting.send(request(claude_turn()))
    before = picture(ingesting)

    rebuild(ingesting.folder)

    assert picture(ingesting) == before


def test_the_same_record_twice_is_stored_once(ingesting: Ingesting) -> None:
    for _ in range(2):
        ingesting.send(hooked(*session()))

    assert only_run(ingesting).tool_calls == 2
    assert hook_rates(ingesting.db, 0).evaluated == 2


def test_warnings_are_counted_within_a_time(ingesting: Ingesting) -> None:
    ingesting.send(hooked(*session()))

    rates = hook_rates(ingesting.db, START_NS)
    assert (rates.evaluated, rates.warned, rates.share) == (2, 1, 0.5)
    assert hook_rates(ingesting.db, START_NS + 3 * S).evaluated == 1
    assert hook_rates(ingesting.db, START_NS + 9 * S).share is None
