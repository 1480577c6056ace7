"""Runs of one session and prompt are of one group, by ids that are in the telemetry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import permutations
from typing import Any

import pytest
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord

from hansard_collector.derivation.rebuild import rebuild
from hansard_collector.derivation.verification import verify_derived
from hansard_collector.pipeline.requests import Signal
from hansard_store.runs.filters import RunFilter
from hansard_store.runs.groups import RunGroup, list_grouped
from hansard_store.runs.queries import list_runs
from tests.collector.ingesting import FIXTURES, START_NS, Ingesting, log, logs, span, traces

CHAT = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}
SESSION = {"session.id": "s"}
CLIENTS = FIXTURES.parent / "clients"


def trace(number: int) -> bytes:
    return bytes([number]) * 16


def rounds(ingesting: Ingesting, told: Sequence[Mapping[str, Any]]) -> list[str | None]:
    """Send a trace for each set of attributes; return their groups."""
    for number, attributes in enumerate(told, start=1):
        ingesting.send(traces([span(1, trace_id=trace(number), attributes=CHAT | attributes)]))
    return groups(ingesting)


def groups(ingesting: Ingesting) -> list[str | None]:
    return [run.group_id for run in list_runs(ingesting.db, RunFilter(), now_ns=0).items][::-1]


@pytest.mark.parametrize(
    ("session", "prompt"),
    [
        ("session.id", "prompt.id"),
        ("session.id", "prompt_id"),
        ("gen_ai.conversation.id", "turn.id"),
        ("conversation.id", "turn_id"),
        ("gen_ai.conversation.id", "gen_ai.prompt.id"),
        ("session.id", "interaction.id"),
        ("session.id", "acme.prompt_id"),
        ("session.id", "acme.agent.turn.id"),
        ("session.id", "acme.turnId"),
        ("traceloop.association.properties.session_id", "traceloop.association.properties.turn_id"),
        ("ai.telemetry.metadata.sessionId", "ai.telemetry.metadata.turnId"),
    ],
)
def test_traces_of_one_session_and_prompt_are_one_group(
    ingesting: Ingesting, session: str, prompt: str
) -> None:
    one, same, next_, other = rounds(
        ingesting,
        [
            {session: "s", prompt: "p1"},
            {session: "s", prompt: "p1"},
            {session: "s", prompt: "p2"},
            {session: "t", prompt: "p1"},
        ],
    )

    assert one == same
    assert one is not None
    assert len({one, next_, other}) == 3


def test_ids_that_are_numbers_are_ids(ingesting: Ingesting) -> None:
    one, same, next_ = rounds(ingesting, [SESSION | {"turn_id": n} for n in (1, 1, 2)])

    assert one == same != next_


@pytest.mark.parametrize(
    "told",
    [
        SESSION,
        {"prompt.id": "p"},
        SESSION | {"prompt.id": ""},
        SESSION | {"prompt.id": "p", "prompt.version": "3"},  # a template's
        SESSION | {"prompt_id": "p", "prompt_name": "greeting"},
        SESSION | {"acme.prompt.id": "p", "acme.prompt.label": "production"},
        SESSION | {"gen_ai.prompt.id": "pmpt_123"},
        SESSION | {"gen_ai.prompt.name": "greeting"},
        SESSION | {"openinference.span.kind": "LLM", "prompt.id": "p"},
        SESSION | {"metadata.prompt_id": "p"},
        SESSION | {"turn": 1},
        SESSION | {"prompt.id": "p" * 501},
        SESSION | {"prompt.id": True},
        SESSION | {"prompt.id": "<REDACTED>"},
    ],
    ids=str,
)
def test_nothing_else_makes_a_group(ingesting: Ingesting, told: Mapping[str, Any]) -> None:
    assert rounds(ingesting, [told, told]) == [None, None]


def test_a_trace_of_several_prompts_is_of_no_group(ingesting: Ingesting) -> None:
    ingesting.send(
        traces(
            span(number, trace_id=trace(9), attributes=CHAT | SESSION | {"prompt.id": f"p{number}"})
            for number in (1, 2)
        )
    )

    assert groups(ingesting) == [None]


def test_a_sub_agents_prompt_is_the_one_that_it_serves(ingesting: Ingesting) -> None:
    main = SESSION | {"prompt_id": "s########3"}
    helper = SESSION | {"prompt_id": "s########3#helper#1"}
    turn = SESSION | {"turn.id": "t1"}
    sub_agent = SESSION | {"turn.id": "t7", "root.turn.id": "t1"}

    found = rounds(ingesting, [main, helper, turn, sub_agent])

    assert found[0] == found[1] != found[2] == found[3]


@pytest.mark.parametrize("order", list(permutations(range(3))), ids=str)
def test_log_records_name_the_prompt_of_their_trace_in_any_order(
    ingesting: Ingesting, order: Sequence[int]
) -> None:
    noted = log(
        1, event_name="acme.note", attributes=SESSION | {"prompt.id": "p"}, trace_id=trace(1)
    )
    sent = [
        traces([span(1, trace_id=trace(1), attributes=CHAT)]),
        logs([noted]),
        traces([span(1, trace_id=trace(2), attributes=CHAT | SESSION | {"prompt.id": "p"})]),
    ]
    for number in order:
        ingesting.send(sent[number])

    one, other = groups(ingesting)
    assert one == other
    assert one is not None
    assert verify_derived(ingesting.folder) == []


def test_a_late_record_of_another_prompt_takes_a_trace_out_of_its_group(
    ingesting: Ingesting,
) -> None:
    def noted(prompt: str) -> None:
        told = SESSION | {"prompt.id": prompt}
        ingesting.send(logs([log(1, event_name="acme.note", attributes=told, trace_id=trace(1))]))

    rounds(ingesting, [SESSION])
    noted("p")
    assert None not in groups(ingesting)

    noted("q")

    assert groups(ingesting) == [None]
    assert verify_derived(ingesting.folder) == []


def test_gemini_cli_sends_three_traces_for_a_prompt_and_each_call_counts_once(
    ingesting: Ingesting,
) -> None:
    _send(ingesting, "gemini_cli")

    asked, failed = list_grouped(ingesting.db, RunFilter(), now_ns=0).items[::-1]

    assert isinstance(asked, RunGroup)
    assert not isinstance(failed, RunGroup)
    assert len(asked.members) == 3
    whole = asked.whole
    assert (whole.model_calls, whole.tool_calls) == (2, 1)
    assert whole.tokens is not None
    assert (whole.tokens.input, whole.tokens.output) == (258, 70)
    assert (whole.first_input, whole.status) == ("What is the weather in Paris?", "ok")
    assert whole.last_output == asked.members[-1].last_output


@pytest.mark.parametrize(
    "client", ["gemini_cli", "codex_traces_and_logs", "claude_code_traces_and_logs"]
)
def test_a_coding_agents_prompts_are_groups_that_a_rebuild_makes_again(
    ingesting: Ingesting, client: str
) -> None:
    _send(ingesting, client)
    before = groups(ingesting)
    assert None not in before

    rebuild(ingesting.folder)

    assert groups(ingesting) == before
    assert verify_derived(ingesting.folder) == []


def _send(ingesting: Ingesting, client: str) -> None:
    for path in sorted((CLIENTS / client).glob("*.binpb")):
        ingesting.send_bytes(Signal(path.suffixes[-2].removeprefix(".")), path.read_bytes())


def test_a_call_that_spans_tell_in_one_trace_and_records_in_another_counts_once(
    ingesting: Ingesting,
) -> None:
    prompt = {"session.id": "s", "prompt.id": "p"}
    usage = {"gen_ai.usage.input_tokens": 30, "gen_ai.usage.output_tokens": 7}
    tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "ls",
            "gen_ai.tool.call.id": "c1"}  # fmt: skip
    ingesting.send(
        traces(
            [
                span(
                    1,
                    start_s=0,
                    duration_s=9,
                    attributes=prompt | {"openinference.span.kind": "AGENT"},
                ),
                span(2, 1, start_s=1, duration_s=2, attributes=CHAT | prompt | usage),
                span(3, 1, start_s=4, duration_s=2, attributes=tool | prompt),
            ]
        )
    )
    told = {"model": "m", "input_tokens": 30, "output_tokens": 7, "duration_ms": 2000}
    ran = {"function_name": "ls", "call_id": "c1", "duration_ms": 1500}
    ingesting.send(
        logs(
            [
                note("user_prompt", prompt, at_s=0),
                note("api_response", prompt | told, at_s=3),
                note("tool_call", prompt | ran, at_s=5.8),
            ],
            service="acme",
        )
    )

    [group] = list_grouped(ingesting.db, RunFilter(), now_ns=0).items

    assert isinstance(group, RunGroup)
    assert [run.model_calls for run in group.members] == [1, 1]
    assert (group.whole.model_calls, group.whole.tool_calls) == (1, 1)
    assert group.whole.tokens is not None
    assert (group.whole.tokens.input, group.whole.tokens.output) == (30, 7)


def note(event: str, told: Mapping[str, Any], *, at_s: float) -> LogRecord:
    """Return a record of an agent that is told of without trace ids."""
    made = log(event_name=f"acme.{event}", attributes=told)
    made.time_unix_nano = START_NS + round(at_s * 1e9)
    return made


def test_rounds_that_run_at_once_are_calls_of_their_own(ingesting: Ingesting) -> None:
    prompt = {"session.id": "s", "prompt.id": "p"}
    usage = {"gen_ai.usage.input_tokens": 30, "gen_ai.usage.output_tokens": 7}
    rounds(ingesting, [prompt | usage, prompt | usage])

    [group] = list_grouped(ingesting.db, RunFilter(), now_ns=0).items

    assert isinstance(group, RunGroup)
    assert group.whole.model_calls == 2
