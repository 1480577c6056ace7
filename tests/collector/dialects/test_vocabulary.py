"""Words that dialects spell differently (rules 0.8 and 0.9)."""

from __future__ import annotations

import pytest

from hansard_collector.dialects.engine import vocabulary
from tests.collector.dialects.maker import call_of, read


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        ("stop", "stop"),
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("STOP", "stop"),
        ("FinishReason.STOP", "stop"),
        ("length", "length"),
        ("max_tokens", "length"),
        ("MAX_TOKENS", "length"),
        ("max_output_tokens", "length"),
        ("tool_calls", "tool_call"),
        ("tool-calls", "tool_call"),
        ("tool_call", "tool_call"),
        ("tool_use", "tool_call"),
        ("function_call", "tool_call"),
        ("content-filter", "content_filter"),
        ("SAFETY", "content_filter"),
        ("refusal", "content_filter"),
        ("error", "error"),
        ("compaction", "compaction"),
        ("pause_turn", "other"),
        ("something", "other"),
        ("completed", None),
        ("", None),
    ],
)
def test_a_finish_reason_is_one_of_seven_or_none(raw: str, reason: str | None) -> None:
    assert vocabulary.finish_reason(raw) == reason


def test_a_responses_status_is_no_finish_reason() -> None:
    call = call_of(
        {"gen_ai.operation.name": "chat", "gen_ai.response.finish_reasons": ["completed"]}
    )

    assert (call.finish_reason, call.finish_reason_raw) == (None, None)


@pytest.mark.parametrize(
    ("sent", "name"),
    [
        ("openai", "openai"),
        ("OpenAI", "openai"),
        ("openai.chat", "openai"),
        ("openai.responses", "openai"),
        ("Anthropic", "anthropic"),
        ("anthropic.messages", "anthropic"),
        ("gemini", "gcp.gemini"),
        ("google", "gcp.gemini"),
        ("google.generative-ai", "gcp.gemini"),
        ("gcp.gemini", "gcp.gemini"),
        ("vertex_ai", "gcp.vertex_ai"),
        ("vertexai", "gcp.vertex_ai"),
        ("google_vertexai", "gcp.vertex_ai"),
        ("google.vertex.chat", "gcp.vertex_ai"),
        ("az.ai.openai", "azure.ai.openai"),
        ("azure", "azure.ai.openai"),
        ("azure.chat", "azure.ai.openai"),
        ("az.ai.inference", "azure.ai.inference"),
        ("bedrock", "aws.bedrock"),
        ("AWS", "aws.bedrock"),
        ("amazon-bedrock", "aws.bedrock"),
        ("xai", "x_ai"),
        ("xai.chat", "x_ai"),
        ("x_ai", "x_ai"),
        ("mistralai", "mistral_ai"),
        ("mistral.chat", "mistral_ai"),
        ("ibm.watsonx.ai", "ibm.watsonx.ai"),
        ("ollama", "ollama"),
        ("gcp.vertex.agent", None),
        ("spring_ai", None),
        ("strands-agents", None),
        ("autogen", None),
        ("microsoft.agent_framework", None),
        ("Langchain", None),
        ("api.openai.com", "openai"),
        ("https://api.openai.com/v1", "openai"),
        ("api.anthropic.com", "anthropic"),
        ("generativelanguage.googleapis.com", "gcp.gemini"),
        ("europe-west4-aiplatform.googleapis.com", "gcp.vertex_ai"),
        ("mine.openai.azure.com", "azure.ai.openai"),
        ("bedrock-runtime.us-east-1.amazonaws.com", "aws.bedrock"),
        ("api.groq.com:443", "groq"),
        ("127.0.0.1:4000", "127.0.0.1:4000"),
        ("http://localhost:11434/v1", "localhost:11434"),
        ("[::1]:4000", "[::1]:4000"),
        ("my-gateway.internal", "my-gateway.internal"),
        ("https://user:secret@proxy.example.org/v1", "proxy.example.org"),
        ("api.openai.com.evil.example", "api.openai.com.evil.example"),
        ("notopenai.com", "notopenai.com"),
        ("my-provider.chat", "my-provider"),
        ("groq.transcription", "groq"),
    ],
)
def test_a_provider_has_one_spelling_and_a_framework_is_none(sent: str, name: str | None) -> None:
    assert vocabulary.provider(sent) == name


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("gpt-4o-mini-2024-07-18", "openai"),
        ("o4-mini", "openai"),
        ("text-embedding-3-small", "openai"),
        ("claude-sonnet-4-5", "anthropic"),
        ("anthropic.claude-3-5-sonnet-20241022-v2:0", "aws.bedrock"),
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", "aws.bedrock"),
        ("gemini-2.5-pro", "gcp.gemini"),
        ("models/gemini-2.0-flash", "gcp.gemini"),
        ("openai/gpt-4o", "openai"),
        ("gemini/gemini-2.5-pro", "gcp.gemini"),
        ("mistral-large-latest", "mistral_ai"),
        ("grok-4", "x_ai"),
        ("llama3.2", None),
        ("", None),
    ],
)
def test_a_provider_is_guessed_from_a_telling_model_name(model: str, name: str | None) -> None:
    assert vocabulary.provider_of_model(model) == name


def test_a_framework_in_the_provider_slot_gives_way_to_the_model() -> None:
    call = call_of(
        {
            "gen_ai.operation.name": "chat",
            "gen_ai.system": "strands-agents",
            "gen_ai.request.model": "gpt-4o-mini",
        }
    )

    assert call.provider == "openai"
    assert call.sources["provider"] == "guessed from the model"


@pytest.mark.parametrize(
    ("sent", "role"),
    [
        ("developer", "system"),
        ("human", "user"),
        ("ai", "assistant"),
        ("model", "assistant"),
        ("HumanMessage", "user"),
        ("MessageRole.ASSISTANT", "assistant"),
        ("function", "tool"),
        ("critic", "critic"),
    ],
)
def test_a_speaker_has_one_word(sent: str, role: str) -> None:
    assert vocabulary.message_role(sent) == role


@pytest.mark.parametrize(
    ("attributes", "span", "dialect"),
    [
        ({}, {"scope": "com.anthropic.claude_code.tracing"}, "claude_code"),
        ({}, {"name": "claude_code.tool"}, "claude_code"),
        ({}, {"scope": "com.anthropic.sdk.python"}, "anthropic_sdk"),
        ({}, {"scope": "com.anthropic.claude-platform"}, "anthropic_sdk"),
        ({}, {"service": "codex_cli_rs"}, "codex"),
        ({"codex.usage.total_tokens": 1}, {}, "codex"),
        ({}, {"service": "gemini-cli"}, "gemini_cli"),
        ({"langfuse.release": "1"}, {}, "langfuse"),
        ({"mlflow.traceRequestId": '"x"'}, {}, "mlflow"),
        ({"langsmith.trace.name": "x"}, {}, "langsmith"),
        ({"gcp.vertex.agent.data": "x"}, {}, "google_adk"),
        ({}, {"scope": "strands.telemetry.tracer"}, "strands"),
        ({}, {"scope": "agent_framework"}, "agent_framework"),
        ({}, {"scope": "semantic_kernel.utils"}, "semantic_kernel"),
        ({}, {"name": "autogen process agent"}, "autogen"),
        ({}, {"scope": "pydantic-ai"}, "pydantic_ai"),
        ({"logfire.level_num": 9}, {}, "logfire"),
        ({}, {"scope": "litellm"}, "litellm"),
        ({}, {"name": "haystack.pipeline.run"}, "haystack"),
        ({"spring.ai.advisor.name": "x"}, {}, "spring_ai"),
        ({"ai.operationId": "ai.embed"}, {}, "vercel_ai"),
        ({}, {"scope": "gen_ai"}, "vercel_ai"),
        ({"traceloop.entity.path": "x"}, {}, "traceloop"),
        ({"llm.request.type": "chat"}, {}, "traceloop"),
        ({}, {"scope": "openlit.otel.tracing"}, "openlit"),
        ({}, {"scope": "langtrace-python-sdk"}, "langtrace"),
        ({"lmnr.span.path": "x"}, {}, "laminar"),
        ({"lk.user_input": "x"}, {}, "livekit"),
        ({"genkit:type": "flow"}, {}, "genkit"),
        ({"openinference.span.kind": "LLM"}, {}, "openinference"),
        ({"mcp.method.name": "ping"}, {}, "mcp"),
        ({"gen_ai.operation.name": "chat"}, {}, "gen_ai"),
        ({"http.route": "/"}, {"scope": "ai.not.vercel"}, "otel"),
    ],
)
def test_a_dialect_is_known_by_scope_key_or_name(
    attributes: dict[str, object], span: dict[str, str], dialect: str
) -> None:
    assert read(attributes, **span).dialect == dialect
