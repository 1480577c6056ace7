"""What instrumentors tell only in an odd place of their own."""

from __future__ import annotations

import json

from hansard_collector.derivation.rows import derive
from hansard_collector.dialects.engine.item_views import SpanView
from hansard_collector.dialects.engine.normalisation import MessageCache, normalise
from hansard_compiler.calls import ReasoningPart, TextPart, Tool, ToolCallPart, ToolResultPart
from tests.collector.dialects.maker import call_of, event, read, span

_LLM = {"openinference.span.kind": "LLM"}


def _counts(view: SpanView) -> bool:
    projected = derive(view, normalise(view, MessageCache())).call
    assert projected is not None
    return projected.is_candidate


def test_a_model_named_twice_alike_does_not_say_which_one_served() -> None:
    asked = {**_LLM, "llm.invocation_parameters": '{"model": "gpt-4o-mini"}'}

    repeated = call_of({**asked, "llm.model_name": "gpt-4o-mini"})
    served = call_of({**asked, "llm.model_name": "gpt-4o-mini-2024-07-18"})

    assert (repeated.request_model, repeated.response_model) == ("gpt-4o-mini", None)
    assert served.response_model == "gpt-4o-mini-2024-07-18"


def test_a_chunk_class_of_langchain_tells_a_stream_against_the_parameters() -> None:
    asked = {**_LLM, "llm.invocation_parameters": '{"stream": false}'}

    def answered(kind: str) -> str:
        return json.dumps({"generations": [[{"text": "hi", "type": kind}]]})

    assert call_of({**asked, "output.value": answered("ChatGenerationChunk")}).stream is True
    assert call_of({**asked, "output.value": answered("ChatGeneration")}).stream is False


def test_usage_as_the_provider_sent_it_tells_what_other_attributes_do_not() -> None:
    usage = {"completion_tokens_details": {"reasoning_tokens": 8}, "completion_tokens": 23}

    call = call_of(
        {
            "gen_ai.operation.name": "chat",
            "gen_ai.usage.output_tokens": 20,
            "gen_ai.usage.raw": json.dumps(usage),
        }
    )

    assert (call.tokens.output, call.tokens.reasoning) == (20, 8)
    assert call.sources["tokens.reasoning"] == "gen_ai.usage.raw{usage: reasoning}"


def test_tools_among_the_messages_of_langfuse_are_definitions() -> None:
    tool = {"type": "function", "function": {"name": "get_weather", "parameters": {}}}
    sent = [{"role": "user", "content": "hi"}, {"role": "tool", "content": tool}]

    call = call_of(
        {"langfuse.observation.type": "generation", "langfuse.observation.input": json.dumps(sent)}
    )

    assert [message.text for message in call.input] == ["hi"]
    assert [tool["name"] for tool in call.tools] == ["get_weather"]


def test_a_text_that_is_the_json_of_a_call_of_its_message_is_left_out() -> None:
    block = {"type": "tool_use", "id": "c1", "name": "f", "input": {}}
    parts = [
        {"type": "text", "content": "let me see"},
        {"type": "text", "content": json.dumps(block)},
        {"type": "text", "content": json.dumps({**block, "id": "c2"})},
        {"type": "tool_call", "id": "c1", "name": "f", "arguments": {}},
    ]
    messages = json.dumps([{"role": "assistant", "parts": parts}])

    [said] = call_of({"gen_ai.operation.name": "chat", "gen_ai.input.messages": messages}).input

    assert said.text == f"let me see\n{json.dumps({**block, 'id': 'c2'})}"


def test_calls_of_litellm_stand_in_the_flat_form_beside_the_text() -> None:
    said = {"role": "assistant", "parts": [{"type": "text", "content": "let me see"}]}

    [answer] = call_of(
        {
            "gen_ai.operation.name": "chat",
            "litellm.call_id": "1",
            "gen_ai.output.messages": json.dumps([said]),
            "gen_ai.completion.0.function_call.name": "f",
            "gen_ai.completion.0.function_call.arguments": "{}",
        }
    ).output

    assert answer.text == "let me see"
    assert answer.parts[-1] == ToolCallPart(None, "f", {})


def test_the_message_that_a_tool_of_langchain_answers_with_names_the_call() -> None:
    output = json.dumps({"type": "tool", "data": {"content": "ok", "tool_call_id": "c1"}})

    tool = read({"openinference.span.kind": "TOOL", "output.value": output}).tool

    assert tool is not None
    assert tool.call_id == "c1"


def test_a_stream_that_nobody_watched_was_a_call() -> None:
    asked = {**_LLM, "llm.invocation_parameters": '{"model": "m", "stream": true}'}

    assert _counts(span(asked))
    assert not _counts(span({**_LLM, "llm.invocation_parameters": '{"model": "m"}'}))


def test_a_call_without_contents_and_numbers_counts_by_its_finish_reason() -> None:
    asked = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}

    assert _counts(span({**asked, "gen_ai.response.finish_reasons": ["stop"]}))
    assert not _counts(span(asked))


def test_a_stream_of_logfire_is_counted_by_the_record_of_its_answer() -> None:
    asked = {
        "gen_ai.operation.name": "chat",
        "gen_ai.input.messages": "[]",
        "request_data": '{"model": "m", "stream": true}',
    }

    assert not _counts(span({**asked, "logfire.span_type": "span"}))
    assert _counts(span({**asked, "logfire.span_type": "log", "gen_ai.usage.input_tokens": 3}))


def test_a_span_that_names_a_model_and_what_it_would_ask_only_prepares_a_prompt() -> None:
    said = '[{"role": "user", "parts": [{"type": "text", "content": "hi"}]}]'
    asked = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}

    assert not _counts(span({**asked, "gen_ai.input.messages": said}))


def test_an_agents_step_of_haystack_that_tells_replies_is_the_call() -> None:
    meta = {"model": "m-1", "finish_reason": "stop", "usage": {"prompt_tokens": 3}}
    reply = {"role": "assistant", "meta": meta, "content": [{"text": "hi"}]}
    output = json.dumps({"replies": [reply]})

    call = call_of({"haystack.agent.step.llm.output": output}, name="haystack.agent.step.llm")

    assert [message.text for message in call.output] == ["hi"]
    assert (call.response_model, call.finish_reason, call.tokens.input) == ("m-1", "stop", 3)


def test_the_finish_reason_of_a_details_event_may_stand_in_its_messages() -> None:
    answer = [{"role": "assistant", "parts": [], "finish_reason": "end_turn"}]
    details = event(
        "gen_ai.client.inference.operation.details",
        {"gen_ai.output.messages": json.dumps(answer)},
    )

    call = call_of({"gen_ai.operation.name": "chat"}, events=[details])

    assert call.finish_reason == "stop"


def test_results_of_autogen_stand_beside_the_message() -> None:
    result = {"name": "f", "content": "sunny", "call_id": "c1", "is_error": False}

    [said] = call_of(
        {
            **_LLM,
            "llm.input_messages.0.message.role": "function",
            "llm.input_messages.0.function.0": json.dumps(result),
        }
    ).input

    assert (said.role, said.parts) == ("tool", (ToolResultPart("c1", "sunny", "f"),))


def test_a_failed_call_of_openlit_is_known_by_its_name() -> None:
    assert read({}, name="chat m", scope="openlit.instrumentation.anthropic").role == "llm"
    assert read({}, name="chat m", scope="app").role == "other"


def test_events_of_logfire_without_a_choice_end_with_the_answer() -> None:
    untold = {"id": "rs_1", "type": "reasoning", "summary": [{"type": "text", "text": "hm"}]}
    events = [
        {"event.name": "gen_ai.user.message", "role": "user", "content": "hi"},
        {"event.name": "gen_ai.unknown", "role": "assistant", "content": "see", "data": untold},
        {"event.name": "gen_ai.assistant.message", "role": "assistant", "content": "hello"},
    ]

    call = call_of(
        {
            "gen_ai.operation.name": "chat",
            "logfire.span_type": "span",
            "events": json.dumps(events),
        }
    )

    assert [(m.role, m.text) for m in call.input] == [("user", "hi")]
    assert [message.text for message in call.output] == ["hello"]
    assert call.output[0].parts[0] == ReasoningPart("hm")


def test_words_of_smolagents_are_roles_of_what_it_sends() -> None:
    sent = {}
    for at, role in enumerate(("tool-call", "tool-response")):
        sent[f"llm.input_messages.{at}.message.role"] = role
        sent[f"llm.input_messages.{at}.message.content"] = "text"

    assert [message.role for message in call_of({**_LLM, **sent}).input] == ["assistant", "user"]


def test_an_answer_that_logfire_appends_to_the_request_is_the_output() -> None:
    messages = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]
    sent = {
        "gen_ai.operation.name": "chat",
        "logfire.span_type": "span",
        "request_data": json.dumps({"messages": messages}),
    }
    usage = json.dumps({"input_tokens": 3, "input_tokens_details": {"cached_tokens": 2}})

    agents = call_of({**sent, "usage": usage})
    prefilled = call_of(sent)

    assert [message.text for message in agents.input] == ["hi"]
    assert [message.text for message in agents.output] == ["hello"]
    assert (agents.tokens.input, agents.tokens.cache_read) == (3, 2)
    assert [message.text for message in prefilled.input] == ["hi", "hello"]


def test_arguments_of_a_call_that_mlflow_keeps_tell_the_stream() -> None:
    asked = {"gen_ai.operation.name": "chat", "stream": "true"}

    assert call_of(asked, scope="mlflow.tracing.provider").stream is True
    assert call_of(asked).stream is None


def test_a_reason_to_stop_may_stand_in_a_message_under_the_providers_name() -> None:
    answer = [{"role": "assistant", "content": "hi", "stop_reason": "end_turn"}]

    call = call_of({"gen_ai.operation.name": "chat", "gen_ai.output.messages": json.dumps(answer)})

    assert call.finish_reason_raw == "end_turn"


def test_a_text_that_is_the_json_of_reasoning_is_reasoning() -> None:
    item = {"id": "rs_1", "type": "reasoning", "summary": [{"type": "text", "text": "hm"}]}
    parts = [
        {"type": "text", "content": json.dumps(item)},
        {"type": "text", "content": "hello"},
    ]
    answer = json.dumps([{"role": "assistant", "parts": parts}])

    call = call_of({"gen_ai.operation.name": "chat", "gen_ai.output.messages": answer})

    assert call.output[0].parts == (ReasoningPart("hm"), TextPart("hello"))


def test_codex_dispatches_a_tool_in_one_of_its_spans() -> None:
    sent = {"codex.tool.phase": "dispatch", "tool_name": "exec_command", "call_id": "c1"}

    step = read(sent, name="exec_command")

    assert step.role == "tool"
    assert step.tool is not None
    assert (step.tool.name, step.tool.call_id) == ("exec_command", "c1")
    assert read({**sent, "codex.tool.phase": "wait"}).role != "tool"


def test_logfire_tells_what_agents_of_openai_did_by_templates_in_its_names() -> None:
    scope = "logfire.openai_agents"

    agent = read({"name": "weather-agent"}, name="Agent run: {name!r}", scope=scope)
    tool = read(
        {"name": "f", "input": '{"city": "Paris"}', "output": "sunny"},
        name="Function: {name}",
        scope=scope,
    )

    assert (agent.role, agent.agent_name) == ("agent", "weather-agent")
    assert tool.role == "tool"
    assert tool.tool == Tool("f", arguments={"city": "Paris"}, result="sunny")
    assert read({"name": "f"}, name="Function: {name}", scope="logfire").role == "other"


def test_a_message_of_mcp_that_names_no_tool_is_no_tool_call() -> None:
    greeting = span({"mcp.method.name": "initialize"}, name="MCP send initialize")
    called = span(
        {
            "mcp.method.name": "tools/call",
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "get_weather",
        }
    )

    ran = [derive(view, normalise(view, MessageCache())).ran for view in (greeting, called)]

    assert [one is not None for one in ran] == [False, True]


def test_genkit_puts_the_message_into_a_candidate_and_counts_thoughts_apart() -> None:
    usage = {"inputTokens": 10, "outputTokens": 4, "thoughtsTokens": 3, "totalTokens": 17}
    said = {"role": "model", "content": [{"text": "hi"}]}
    output = {"candidates": [{"message": said, "finishReason": "stop"}], "usage": usage}

    call = call_of(
        {
            "genkit:metadata:subtype": "model",
            "genkit:name": "googleai/gemini-2.5-flash",
            "genkit:output": json.dumps(output),
        }
    )

    assert [message.text for message in call.output] == ["hi"]
    assert (call.request_model, call.finish_reason) == ("gemini-2.5-flash", "stop")
    assert (call.tokens.input, call.tokens.output, call.tokens.reasoning) == (10, 7, 3)


def test_an_agent_of_google_adk_1_is_named_in_its_span() -> None:
    agent = read({}, name="agent_run [weather_agent]", scope="gcp.vertex.agent")

    assert (agent.role, agent.agent_name) == ("agent", "weather_agent")
