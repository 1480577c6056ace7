"""Odd shapes in which recorded spans of known dialects tell what they tell."""

from __future__ import annotations

import json
from typing import Any

from hansard_compiler.calls import TextPart, ToolCallPart, ToolResultPart
from tests.collector.dialects.maker import call_of, event, log, read


def test_an_event_may_hold_a_whole_content_of_gemini() -> None:
    def content(role: str, **part: Any) -> dict[str, Any]:
        empty = dict.fromkeys(("file_data", "function_call", "function_response", "text"))
        return {"content": {"parts": [{**empty, **part}], "role": role}}

    called = {"id": "c1", "name": "look", "args": {"city": "Rome"}}
    answered = {"id": "c1", "name": "look", "response": {"result": "warm"}}
    call = call_of(
        {"gen_ai.operation.name": "generate_content"},
        logs=[
            log("gen_ai.user.message", body=content("user", text="Weather?")),
            log("gen_ai.user.message", body=content("model", function_call=called), at_ms=2),
            log("gen_ai.user.message", body=content("user", function_response=answered), at_ms=3),
            log(
                "gen_ai.choice", body={"index": 0, **content("model", text="It is warm.")}, at_ms=4
            ),
        ],
    )

    assert [(message.role, message.parts[0]) for message in call.input] == [
        ("user", TextPart("Weather?")),
        ("assistant", ToolCallPart("c1", "look", {"city": "Rome"})),
        ("tool", ToolResultPart("c1", "warm", "look")),
    ]
    assert [message.text for message in call.output] == ["It is warm."]


def test_no_blocks_beside_a_tool_call_are_no_text() -> None:
    answer = {"gen_ai.completion.0.role": "assistant", "gen_ai.completion.0.content": "[]"}
    called = {
        "gen_ai.completion.0.tool_calls.0.id": "c1",
        "gen_ai.completion.0.tool_calls.0.name": "look",
    }

    alone = call_of({"llm.request.type": "chat", **answer})
    beside = call_of({"llm.request.type": "chat", **answer, **called})

    assert alone.output[0].text == "[]"
    assert beside.output[0].parts == (ToolCallPart("c1", "look", {}),)


def test_messages_of_which_only_the_role_was_flattened_are_taken_from_the_request() -> None:
    system = {
        "lc": 1,
        "id": ["SystemMessage"],
        "kwargs": {"content": [{"type": "text", "text": "Be terse."}]},
    }
    human = {"lc": 1, "id": ["HumanMessage"], "kwargs": {"content": "Weather?"}}
    call = call_of(
        {
            "openinference.span.kind": "LLM",
            "input.value": json.dumps({"messages": [[system, human]]}),
            "llm.input_messages.0.message.role": "system",
            "llm.input_messages.1.message.role": "user",
            "llm.input_messages.1.message.content": "Weather?",
        }
    )

    assert [(m.role, m.text) for m in call.input] == [("system", "Be terse."), ("user", "Weather?")]


def test_a_result_that_was_flattened_as_the_users_words_is_known_from_the_request() -> None:
    called = {"type": "tool_use", "id": "c1", "name": "look", "input": {"city": "Rome"}}
    result = {"type": "tool_result", "tool_use_id": "c1", "content": "warm"}
    request = {
        "messages": [
            {"role": "user", "content": "Weather?"},
            {"role": "assistant", "content": [called]},
            {"role": "user", "content": [result]},
        ]
    }
    flat_call = "llm.input_messages.1.message.tool_calls.0.tool_call.function"
    call = call_of(
        {
            "openinference.span.kind": "LLM",
            "llm.invocation_parameters": '{"model": "claude-haiku-4-5", "system": "Be terse."}',
            "input.value": json.dumps(request),
            "llm.input_messages.0.message.role": "user",
            "llm.input_messages.0.message.content": "Weather?",
            "llm.input_messages.1.message.role": "assistant",
            f"{flat_call}.name": "look",
            f"{flat_call}.arguments": '{"city": "Rome"}',
            "llm.input_messages.2.message.role": "user",
            "llm.input_messages.2.message.content": "warm",
        }
    )

    assert [message.role for message in call.input] == ["system", "user", "assistant", "tool"]
    assert call.input[2].parts == (ToolCallPart("c1", "look", {"city": "Rome"}),)
    assert call.input[3].parts == (ToolResultPart("c1", "warm"),)


def test_langfuse_keeps_instructions_and_tools_of_a_response_in_metadata() -> None:
    call = call_of(
        {
            "langfuse.observation.type": "generation",
            "langfuse.observation.input": '[{"role": "user", "content": "Weather?"}]',
            "langfuse.observation.metadata.instructions": "Be terse.",
            "langfuse.observation.metadata.tools": '[{"type": "function", "name": "look"}]',
        }
    )

    assert [(m.role, m.text) for m in call.input] == [("system", "Be terse."), ("user", "Weather?")]
    assert [tool["name"] for tool in call.tools] == ["look"]


def test_thoughts_of_claude_are_counted_in_a_recorded_response() -> None:
    usage = {"output_tokens": 29, "output_tokens_details": {"thinking_tokens": 7}}
    call = call_of({"openinference.span.kind": "LLM", "output.value": json.dumps({"usage": usage})})

    assert call.tokens.reasoning == 7


def test_semantic_kernel_for_dotnet_has_operations_and_counts_of_its_own() -> None:
    said = event("gen_ai.content.prompt", {"gen_ai.prompt": '[{"role": "user", "content": "hi"}]'})
    call = call_of(
        {
            "gen_ai.operation.name": "chat.completions",
            "gen_ai.request.model": "gpt-4o-mini",
            "gen_ai.response.prompt_tokens": 5,
            "gen_ai.response.completion_tokens": 2,
            "gen_ai.usage.input_audio_tokens": 1,
        },
        scope="Microsoft.SemanticKernel.Diagnostics",
        events=[said],
    )

    assert (call.input[0].text, call.request_model) == ("hi", "gpt-4o-mini")
    assert (call.tokens.input, call.tokens.output, call.tokens.audio_input) == (5, 2, 1)
    assert read({"gen_ai.operation.name": "orchestrate_tools"}).role == "task"


def test_documents_of_spring_are_texts_though_quotes_break_their_json() -> None:
    kind = {"spring.ai.kind": "vector_store"}
    key = "db.vector.query.response.documents"

    listed = read({**kind, key: '["Rome is warm.", "Oslo is cold."]'})
    broken = read({**kind, key: '["He said "warm".", "cold"]'})

    assert [d.content for d in listed.documents] == ["Rome is warm.", "Oslo is cold."]
    assert [d.content for d in broken.documents] == ['["He said "warm".", "cold"]']


def test_a_structured_result_of_a_tool_is_its_result() -> None:
    call = call_of(
        {
            "openinference.span.kind": "LLM",
            "llm.input_messages.0.message.role": "tool",
            "llm.input_messages.0.message.tool_call_id": "c1",
            "llm.input_messages.0.message.content": {"degrees": 18},
        }
    )

    assert call.input[0].parts == (ToolResultPart("c1", {"degrees": 18}),)


def test_json_that_was_sent_as_bytes_is_read_as_json() -> None:
    sent = {"messages": [{"role": "user", "content": "Wetter?"}]}
    call = call_of({"langsmith.span.kind": "llm", "gen_ai.prompt": json.dumps(sent).encode()})
    chain = read({"langsmith.span.kind": "chain", "gen_ai.prompt": "Grüße".encode()})
    image = read({"langsmith.span.kind": "chain", "gen_ai.prompt": b"\xff\xd8\xff"})

    assert call.input[0].text == "Wetter?"
    assert (chain.input, image.input) == ("Grüße", b"\xff\xd8\xff")


def test_chunks_of_a_stream_in_the_output_are_the_answer() -> None:
    def chunk(**delta: Any) -> str:
        choices = [{"index": 0, "delta": delta, "finish_reason": None}]
        return json.dumps({"object": "chat.completion.chunk", "choices": choices})

    call = {"index": 0, "id": "c1", "function": {"name": "look", "arguments": '{"city"'}}
    rest = {"index": 0, "function": {"arguments": ': "Rome"}'}}
    pieces = [
        chunk(role="assistant", content="Let me "),
        chunk(content="look."),
        chunk(tool_calls=[call]),
        chunk(tool_calls=[rest]),
    ]
    span = {"openinference.span.kind": "LLM", "output.mime_type": "application/json"}

    answer = call_of({**span, "output.value": json.dumps(pieces)}).output

    assert [message.parts for message in answer] == [
        (TextPart("Let me look."), ToolCallPart("c1", "look", {"city": "Rome"}))
    ]


def test_a_whole_response_is_the_answer_though_no_attribute_counts_its_tokens() -> None:
    response = {"choices": [{"message": {"role": "assistant", "content": "warm"}}]}
    span = {"openinference.span.kind": "LLM", "output.mime_type": "application/json"}

    answered = call_of({**span, "output.value": json.dumps(response)})
    prepared = call_of({**span, "output.value": '{"messages": [], "tools": []}'})

    assert [message.text for message in answered.output] == ["warm"]
    assert prepared.output == ()


def test_the_prompt_of_older_openlit_is_lines_with_their_speakers() -> None:
    said = "system: Be terse.\nuser: Weather\nin Rome?\nassistant: None\ntool: warm"
    answer = event("gen_ai.content.completion", {"gen_ai.completion": "None"}, at_ms=2)
    events = [event("gen_ai.content.prompt", {"gen_ai.prompt": said}), answer]

    call = call_of({"gen_ai.operation.name": "chat"}, scope="openlit.otel.tracing", events=events)
    plain = call_of({"gen_ai.operation.name": "chat"}, events=events)

    assert [(message.role, message.text) for message in call.input[:2]] == [
        ("system", "Be terse."),
        ("user", "Weather\nin Rome?"),
    ]
    assert call.input[2].parts == (ToolResultPart(None, "warm"),)
    assert call.output == ()
    assert (plain.input[0].text, plain.output[0].text) == (said, "None")


def test_older_semantic_kernel_tells_a_stream_by_its_operation() -> None:
    assert call_of({"gen_ai.operation.name": "chat.streaming_completions"}).stream is True
    assert call_of({"gen_ai.operation.name": "chat.completions"}).stream is None
