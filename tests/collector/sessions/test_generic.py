"""Agents that nobody has described."""

from __future__ import annotations

import json

from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord

from tests.collector.ingesting import Ingesting, pairs
from tests.collector.sessions.maker import (
    at_ns,
    calls_of,
    only_run,
    request,
    runs_of,
    tools_of,
)


def record(name: str, at_s: float, **sent: object) -> LogRecord:
    attributes = {key.replace("__", "."): value for key, value in sent.items()}
    return LogRecord(time_unix_nano=at_ns(at_s), event_name=name, attributes=pairs(attributes))


def test_a_fork_of_a_known_agent_is_read_by_its_shape(ingesting: Ingesting) -> None:
    ingesting.send(
        request(
            [
                record("qwen-code.user_prompt", 0, session__id="s", prompt_id="p1", prompt="Hello"),
                record("qwen-code.api_request", 1, session__id="s", prompt_id="p1", model="qwen3"),
                record("qwen-code.api_response", 3, session__id="s", prompt_id="p1", model="qwen3",
                       duration_ms=2000, input_token_count="50", output_token_count="5",
                       thoughts_token_count="3", total_token_count="58", response_text="Hi."),
                record("qwen-code.tool_call", 4, session__id="s", prompt_id="p1",
                       function_name="ls", function_args="{}", success=True, duration_ms=5),
            ],
            "qwen-code",
        )
    )  # fmt: skip

    run = only_run(ingesting)
    assert (run.agent_name, run.first_input, run.last_output) == ("qwen-code", "Hello", "Hi.")
    assert run.tokens is not None
    assert (run.tokens.input, run.tokens.output, run.tokens.reasoning) == (50, 8, 3)
    assert [normal.tool.name for normal in tools_of(ingesting, run) if normal.tool] == ["ls"]


def test_an_event_of_the_conventions_alone_is_a_call(ingesting: Ingesting) -> None:
    """Instrumentation with events only, its traces not exported."""
    said = [{"role": "user", "parts": [{"type": "text", "content": "Hi"}]}]
    ingesting.send(
        request(
            [
                record(
                    "gen_ai.client.inference.operation.details", 2,
                    gen_ai__conversation__id="c1", gen_ai__operation__name="chat",
                    gen_ai__request__model="gpt-5", gen_ai__usage__input_tokens=11,
                    gen_ai__usage__output_tokens=3, gen_ai__response__id="resp_1",
                    gen_ai__input__messages=json.dumps(said),
                )
            ],
            "shop",
        )
    )  # fmt: skip

    run = only_run(ingesting)
    assert (run.agent_name, run.conversation_id, run.first_input) == ("shop", "c1", "Hi")
    (normal,) = calls_of(ingesting, run)
    assert normal.call is not None
    assert (normal.call.tokens.input, normal.call.response_id) == (11, "resp_1")


def test_events_of_an_ordinary_program_make_no_run(ingesting: Ingesting) -> None:
    ingesting.send(
        request(
            [
                record("shop.checkout", 1, session__id="s", total=5),
                record("user_prompt", 1, session__id="s", prompt="no agent in this name"),
                record("shop.tool_result", 1, tool_name="no session"),
            ],
            "shop",
        )
    )

    assert runs_of(ingesting) == []
    assert ingesting.one("SELECT count(*) FROM log_record WHERE trace_id IS NOT NULL") == 0
