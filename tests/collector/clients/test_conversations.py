"""What several traces of one session tell together."""

from __future__ import annotations

import pytest

from hansard_collector.pipeline.requests import Signal
from hansard_store.runs.conversations import get_conversation
from tests.collector.clients.scoring import CLIENTS, send
from tests.collector.ingesting import Ingesting, span, traces


def test_a_conversation_of_gemini_cli_has_the_sums_of_its_provider(ingesting: Ingesting) -> None:
    send(ingesting, CLIENTS / "gemini_cli")
    name = ingesting.one("SELECT DISTINCT conversation_id FROM run WHERE tool_calls > 0")

    talk = get_conversation(ingesting.db, name)

    assert (talk.runs, talk.model_calls, talk.tool_calls) == (3, 2, 1)
    assert talk.tokens is not None
    assert (talk.tokens.input, talk.tokens.output) == (258, 70)
    assert (talk.tokens.cache_read, talk.tokens.reasoning) == (160, 16)


def test_a_call_id_that_comes_back_in_every_run_counts_in_each(ingesting: Ingesting) -> None:
    for number in (1, 2):
        trace = bytes([number]) * 16
        told = {"gen_ai.conversation.id": "c"}
        asked = [{"role": "assistant", "parts": [
            {"type": "tool_call", "id": "call_0", "name": "look", "arguments": {}}]}]  # fmt: skip
        call = told | {"gen_ai.operation.name": "chat", "gen_ai.output.messages": asked}
        ran = told | {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "look",
                      "gen_ai.tool.call.id": "call_0"}  # fmt: skip
        ingesting.send(traces([
            span(1, trace_id=trace, attributes=call),
            span(2, 1, trace_id=trace, attributes=ran),
        ]))  # fmt: skip

    assert get_conversation(ingesting.db, "c").tool_calls == 2


@pytest.mark.parametrize("recording", ["codex_logs", "codex_traces_and_logs"])
@pytest.mark.parametrize("backwards", [False, True])
def test_a_turn_of_codex_tells_its_prompt_in_both_set_ups(
    ingesting: Ingesting, recording: str, backwards: bool
) -> None:
    for path in sorted((CLIENTS / recording).glob("*.binpb"), reverse=backwards):
        ingesting.send_bytes(Signal(path.suffixes[-2].removeprefix(".")), path.read_bytes())

    told = ingesting.all(
        "SELECT agent_name, first_input, model_calls, tool_calls FROM run WHERE model_calls > 0"
    )
    assert told == [("codex", "What is the weather in Paris?", 2, 1)]


def test_a_turn_of_claude_code_is_an_error_and_has_its_answer_in_the_recommended_set_up(
    ingesting: Ingesting,
) -> None:
    send(ingesting, CLIENTS / "claude_code_traces_and_logs")

    told = ingesting.all("SELECT status, agent_name, last_output FROM run ORDER BY started_ns")
    assert told == [
        ("ok", "claude-code", "It is 18 C and sunny in Paris."),
        ("error", "claude-code", None),
    ]


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize(
    ("recording", "agents"),
    [
        ("langgraph_instrumented", [None, "clerk", "clerk"]),
        ("llama_index_instrumented", ["clerk"]),
        ("openai_agents_handoff", ["boss"]),
    ],
)
def test_a_run_has_the_name_of_its_agent(
    ingesting: Ingesting, recording: str, agents: list[str | None], backwards: bool
) -> None:
    for path in sorted((CLIENTS / recording).glob("*.binpb"), reverse=backwards):
        ingesting.send_bytes(Signal.TRACES, path.read_bytes())

    told = ingesting.all("SELECT agent_name FROM run ORDER BY started_ns")
    assert [name for (name,) in told] == agents


def test_a_handoff_is_the_step_of_the_call_that_asked_for_it(ingesting: Ingesting) -> None:
    send(ingesting, CLIENTS / "openai_agents_handoff")

    told = ingesting.all("""
        SELECT tool_event.name, ran.name FROM tool_event JOIN span AS ran ON ran.id = tool_event.ran
        WHERE requested IS NOT NULL ORDER BY ran.sort_ns
    """)
    assert told == [("transfer_to_clerk", "handoff to clerk"), ("get_weather", "get_weather")]


def test_what_is_recorded_in_a_step_of_langchain_is_in_its_trace(ingesting: Ingesting) -> None:
    send(ingesting, CLIENTS / "langgraph_instrumented")

    outer = ingesting.all("""
        SELECT outer.name, outer.flags & 1 FROM span AS inner
        LEFT JOIN span AS outer
          ON outer.trace_id = inner.trace_id AND outer.span_id = inner.parent_span_id
        WHERE inner.name = 'chat gpt-4o-mini'
    """)
    assert outer == [("ChatOpenAI", 1)] * 5
    assert ingesting.one("SELECT count(*) FROM run") == 3
