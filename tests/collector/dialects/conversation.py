"""One conversation as every dialect that carries content writes it.

System: be terse. User asks; the assistant calls a tool, the tool answers, the assistant answers.
Each entry gives the span of the second model call.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from hansard_collector.dialects.engine.item_views import SpanView
from tests.collector.dialects.maker import event, log, span

SYSTEM = "You are terse."
ASKED = "What is the weather in Paris?"
CALL_ID = "call_1"
TOOL = "get_weather"
ARGUMENTS = {"city": "Paris", "days": 2}
RESULT = "18 °C and sunny"
ANSWER = "It is 18 °C and sunny ☀."

_ARGUMENTS_TEXT = json.dumps(ARGUMENTS)
_CHAT = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "gpt-4o-mini"}
_ANTHROPIC = {"gen_ai.system": "Anthropic", "llm.request.type": "completion"}


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


# ---- the shapes that chat APIs and frameworks give a conversation

OTEL_INPUT = [
    {"role": "system", "parts": [{"type": "text", "content": SYSTEM}]},
    {"role": "user", "parts": [{"type": "text", "content": ASKED}]},
    {
        "role": "assistant",
        "parts": [{"type": "tool_call", "id": CALL_ID, "name": TOOL, "arguments": ARGUMENTS}],
    },
    {
        "role": "tool",
        "parts": [{"type": "tool_call_response", "id": CALL_ID, "response": RESULT}],
    },
]
OTEL_OUTPUT = [
    {
        "role": "assistant",
        "parts": [{"type": "text", "content": ANSWER}],
        "finish_reason": "stop",
    }
]

OPENAI_CALL = {
    "id": CALL_ID,
    "type": "function",
    "function": {"name": TOOL, "arguments": _ARGUMENTS_TEXT},
}
OPENAI_INPUT: list[dict[str, Any]] = [
    {"role": "system", "content": SYSTEM},
    {"role": "user", "content": ASKED},
    {"role": "assistant", "content": None, "tool_calls": [OPENAI_CALL]},
    {"role": "tool", "tool_call_id": CALL_ID, "content": RESULT},
]
OPENAI_OUTPUT = {"role": "assistant", "content": ANSWER}

RESPONSES_REQUEST = {
    "model": "o4-mini",
    "instructions": SYSTEM,
    "input": [
        {"role": "user", "content": [{"type": "input_text", "text": ASKED}]},
        {
            "type": "function_call",
            "id": "fc_1",
            "call_id": CALL_ID,
            "name": TOOL,
            "arguments": _ARGUMENTS_TEXT,
        },
        {"type": "function_call_output", "call_id": CALL_ID, "output": RESULT},
    ],
}
RESPONSES_RESPONSE = {
    "id": "resp_1",
    "output": [
        {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": ANSWER}],
        }
    ],
}

ANTHROPIC_REQUEST: dict[str, Any] = {
    "system": [{"type": "text", "text": SYSTEM}],
    "messages": [
        {"role": "user", "content": ASKED},
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": CALL_ID, "name": TOOL, "input": ARGUMENTS}],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": CALL_ID,
                    "content": [{"type": "text", "text": RESULT}],
                }
            ],
        },
    ],
}
ANTHROPIC_RESPONSE = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "content": [{"type": "text", "text": ANSWER}],
}

GEMINI_REQUEST = {
    "model": "gemini-2.5-pro",
    "config": {"system_instruction": SYSTEM},
    "contents": [
        {"role": "user", "parts": [{"text": ASKED}]},
        {
            "role": "model",
            "parts": [{"function_call": {"id": CALL_ID, "name": TOOL, "args": ARGUMENTS}}],
        },
        {
            "role": "user",
            "parts": [
                {
                    "function_response": {
                        "id": CALL_ID,
                        "name": TOOL,
                        "response": {"result": RESULT},
                    }
                }
            ],
        },
    ],
}
GEMINI_RESPONSE = {"content": {"role": "model", "parts": [{"text": ANSWER}]}}

BEDROCK_CALL = [{"toolUse": {"toolUseId": CALL_ID, "name": TOOL, "input": ARGUMENTS}}]
BEDROCK_RESULT = [
    {"toolResult": {"toolUseId": CALL_ID, "status": "success", "content": [{"text": RESULT}]}}
]

AI_SDK_MESSAGES = [
    {"role": "system", "content": SYSTEM},
    {"role": "user", "content": [{"type": "text", "text": ASKED}]},
    {
        "role": "assistant",
        "content": [
            {"type": "tool-call", "toolCallId": CALL_ID, "toolName": TOOL, "input": ARGUMENTS}
        ],
    },
    {
        "role": "tool",
        "content": [
            {
                "type": "tool-result",
                "toolCallId": CALL_ID,
                "toolName": TOOL,
                "output": {"type": "text", "value": RESULT},
            }
        ],
    },
]
AI_SDK_4_MESSAGES = [
    {"role": "system", "content": SYSTEM},
    {"role": "user", "content": ASKED},
    {
        "role": "assistant",
        "content": [
            {"type": "tool-call", "toolCallId": CALL_ID, "toolName": TOOL, "args": ARGUMENTS}
        ],
    },
    {
        "role": "tool",
        "content": [
            {"type": "tool-result", "toolCallId": CALL_ID, "toolName": TOOL, "result": RESULT}
        ],
    },
]


def _lc(name: str, **kwargs: Any) -> dict[str, Any]:
    path = ["langchain", "schema", "messages", name]
    return {"lc": 1, "type": "constructor", "id": path, "kwargs": kwargs}


LANGCHAIN_CALL = {"name": TOOL, "args": ARGUMENTS, "id": CALL_ID, "type": "tool_call"}
LANGCHAIN_REQUEST = {
    "messages": [
        [
            _lc("SystemMessage", content=SYSTEM, type="system"),
            _lc("HumanMessage", content=ASKED, type="human"),
            _lc("AIMessage", content="", type="ai", tool_calls=[LANGCHAIN_CALL]),
            _lc("ToolMessage", content=RESULT, type="tool", tool_call_id=CALL_ID),
        ]
    ]
}
LANGCHAIN_RESPONSE = {
    "generations": [
        [
            {
                "text": ANSWER,
                "type": "ChatGeneration",
                "message": _lc("AIMessage", content=ANSWER, type="ai"),
            }
        ]
    ]
}
LANGCHAIN_DUMPED = [
    {"type": "system", "data": {"content": SYSTEM, "type": "system"}},
    {"type": "human", "data": {"content": ASKED, "type": "human"}},
    {"type": "ai", "data": {"content": "", "type": "ai", "tool_calls": [LANGCHAIN_CALL]}},
    {"type": "tool", "data": {"content": RESULT, "type": "tool", "tool_call_id": CALL_ID}},
]

HAYSTACK_MESSAGES = [
    {"role": "system", "content": [{"text": SYSTEM}], "meta": {}},
    {"role": "user", "content": [{"text": ASKED}], "meta": {}},
    {
        "role": "assistant",
        "content": [{"tool_call": {"tool_name": TOOL, "arguments": ARGUMENTS, "id": CALL_ID}}],
    },
    {
        "role": "tool",
        "content": [
            {
                "tool_call_result": {
                    "result": RESULT,
                    "origin": {"tool_name": TOOL, "arguments": ARGUMENTS, "id": CALL_ID},
                    "error": False,
                }
            }
        ],
    },
]


def _flat_openinference(prefix: str, index: int, fields: Mapping[str, Any]) -> dict[str, Any]:
    return {f"{prefix}.{index}.message.{rest}": value for rest, value in fields.items()}


_OI_CALL = "tool_calls.0.tool_call"
OPENINFERENCE = {
    **_flat_openinference("llm.input_messages", 0, {"role": "system", "content": SYSTEM}),
    **_flat_openinference("llm.input_messages", 1, {"role": "user", "content": ASKED}),
    **_flat_openinference(
        "llm.input_messages",
        2,
        {
            "role": "assistant",
            f"{_OI_CALL}.id": CALL_ID,
            f"{_OI_CALL}.function.name": TOOL,
            f"{_OI_CALL}.function.arguments": _ARGUMENTS_TEXT,
        },
    ),
    **_flat_openinference(
        "llm.input_messages",
        10,  # indices have holes and are sorted as numbers
        {"role": "tool", "tool_call_id": CALL_ID, "content": RESULT},
    ),
    **_flat_openinference(
        "llm.output_messages",
        0,
        {
            "role": "assistant",
            "contents.0.message_content.type": "text",
            "contents.0.message_content.text": ANSWER,
            "content": ANSWER,
        },
    ),
}

TRACELOOP_OLD = {
    "gen_ai.prompt.0.role": "system",
    "gen_ai.prompt.0.content": SYSTEM,
    "gen_ai.prompt.1.role": "user",
    "gen_ai.prompt.1.content": ASKED,
    "gen_ai.prompt.2.role": "assistant",
    "gen_ai.prompt.2.tool_calls.0.id": CALL_ID,
    "gen_ai.prompt.2.tool_calls.0.name": TOOL,
    "gen_ai.prompt.2.tool_calls.0.arguments": _ARGUMENTS_TEXT,
    "gen_ai.prompt.3.role": "tool",
    "gen_ai.prompt.3.content": RESULT,
    "gen_ai.prompt.3.tool_call_id": CALL_ID,
    "gen_ai.prompt.prompt_filter_results": "[]",
    "gen_ai.completion.0.role": "assistant",
    "gen_ai.completion.0.content": ANSWER,
    "gen_ai.completion.0.finish_reason": "stop",
}
TRACELOOP_OLD_ANTHROPIC = {
    **{key: value for key, value in TRACELOOP_OLD.items() if ".2." not in key and ".3." not in key},
    "gen_ai.prompt.2.role": "assistant",
    "gen_ai.prompt.2.content": _json(ANTHROPIC_REQUEST["messages"][1]["content"]),
    "gen_ai.prompt.3.role": "user",
    "gen_ai.prompt.3.content": _json(ANTHROPIC_REQUEST["messages"][2]["content"]),
}

_LOG_BODIES: list[tuple[str, Any]] = [
    ("gen_ai.system.message", {"content": SYSTEM}),
    ("gen_ai.user.message", {"content": ASKED}),
    ("gen_ai.assistant.message", {"tool_calls": [OPENAI_CALL]}),
    ("gen_ai.tool.message", {"content": RESULT, "id": CALL_ID}),
    ("gen_ai.choice", {"index": 0, "finish_reason": "stop", "message": OPENAI_OUTPUT}),
]


def _message_logs(read: Callable[[Any], Any] = lambda body: body) -> list[Any]:
    return [
        log(name, {"gen_ai.system": "openai"}, body=read(body), at_ms=index + 1)
        for index, (name, body) in enumerate(_LOG_BODIES)
    ]


def _span_event_messages() -> list[Any]:
    """Conventions 1.28 as span events: the body's fields are attributes, `message` is JSON."""
    events = []
    for index, (name, body) in enumerate(_LOG_BODIES):
        attributes = {
            key: _json(value) if isinstance(value, dict | list) else value
            for key, value in body.items()
        }
        events.append(event(name, attributes, at_ms=index + 1))
    return events[::-1]  # put in order by time, whatever the order sent


def _azure_events() -> list[Any]:
    return [
        event(name, {"gen_ai.system": "az.ai.inference", "gen_ai.event.content": _json(body)})
        for name, body in _LOG_BODIES
    ]


_STRANDS_EVENTS = [
    event("gen_ai.system.message", {"content": _json([{"text": SYSTEM}])}),
    event("gen_ai.user.message", {"content": _json([{"text": ASKED}])}),
    event("gen_ai.assistant.message", {"content": _json(BEDROCK_CALL)}),
    event("gen_ai.tool.message", {"content": _json(BEDROCK_RESULT)}),
    event("gen_ai.choice", {"finish_reason": "end_turn", "message": _json([{"text": ANSWER}])}),
]

_PYDANTIC_V1_EVENTS = [
    {"event.name": name, "gen_ai.message.index": index, **body}
    for index, (name, body) in enumerate(_LOG_BODIES)
]

_DETAILS = "gen_ai.client.inference.operation.details"


def _twice(value: Any) -> str:
    return json.dumps(json.dumps(value))


# A dialect's name, and the span of the call.
CONVERSATIONS: Mapping[str, SpanView] = {
    "OTel, structured": span(
        {**_CHAT, "gen_ai.input.messages": OTEL_INPUT, "gen_ai.output.messages": OTEL_OUTPUT}
    ),
    "OTel, JSON and system instructions": span(
        {
            **_CHAT,
            "gen_ai.system_instructions": _json([{"type": "text", "content": SYSTEM}]),
            "gen_ai.input.messages": _json(OTEL_INPUT[1:]),
            "gen_ai.output.messages": _json(OTEL_OUTPUT),
        }
    ),
    "OTel, details event as a log": span(
        _CHAT,
        logs=[
            log(
                _DETAILS,
                {"gen_ai.input.messages": OTEL_INPUT, "gen_ai.output.messages": OTEL_OUTPUT},
            )
        ],
    ),
    "OTel, details events of the span": span(
        _CHAT,
        events=[
            event(
                _DETAILS,
                {
                    "gen_ai.system_instructions": _json([{"type": "text", "content": SYSTEM}]),
                    "gen_ai.input.messages": _json(OTEL_INPUT[1:]),
                },
            ),
            event(_DETAILS, {"gen_ai.output.messages": _json(OTEL_OUTPUT)}),
        ],
    ),
    "OTel 1.28, message events as logs": span(_CHAT, logs=_message_logs()),
    "OTel 1.28, message events of the span": span(_CHAT, events=_span_event_messages()),
    "OTel 1.27, content events": span(
        _CHAT,
        events=[
            event("gen_ai.content.prompt", {"gen_ai.prompt": _json(OPENAI_INPUT)}),
            event("gen_ai.content.completion", {"gen_ai.completion": _json([OPENAI_OUTPUT])}),
        ],
    ),
    "OTel 1.26, content attributes": span(
        {
            **_CHAT,
            "gen_ai.prompt": _json(OPENAI_INPUT),
            "gen_ai.completion": _json([OPENAI_OUTPUT]),
        }
    ),
    "AgentCore, details in the log's body": span(
        _CHAT,
        logs=[
            log(
                _DETAILS,
                body={
                    "input": {"messages": OPENAI_INPUT},
                    "output": {"messages": [OPENAI_OUTPUT]},
                },
            )
        ],
    ),
    "OpenInference": span({"openinference.span.kind": "LLM", **OPENINFERENCE}),
    "OpenLLMetry, new": span(
        {
            **_CHAT,
            "traceloop.workflow.name": "w",
            "gen_ai.input.messages": _json(OTEL_INPUT),
            "gen_ai.output.messages": _json(OTEL_OUTPUT),
        }
    ),
    "OpenLLMetry, old": span({"llm.request.type": "chat", **TRACELOOP_OLD}),
    "OpenLLMetry, old, Anthropic blocks": span({**_ANTHROPIC, **TRACELOOP_OLD_ANTHROPIC}),
    "Vercel 5 and 6": span(
        {
            "ai.operationId": "ai.generateText.doGenerate",
            "ai.prompt.messages": _json(AI_SDK_MESSAGES),
            "ai.response.text": ANSWER,
        }
    ),
    "Vercel 4": span(
        {
            "ai.operationId": "ai.streamText.doStream",
            "ai.prompt.messages": _json(AI_SDK_4_MESSAGES),
            "ai.result.text": ANSWER,
        }
    ),
    "Vercel 7": span(
        {
            "gen_ai.operation.name": "chat",
            "gen_ai.system_instructions": _json([{"type": "text", "content": SYSTEM}]),
            "gen_ai.input.messages": _json(OTEL_INPUT[1:]),
            "gen_ai.output.messages": _json(OTEL_OUTPUT),
        },
        scope="gen_ai",
    ),
    "Pydantic AI 3 to 5": span(
        {
            **_CHAT,
            "gen_ai.system_instructions": _json([{"type": "text", "content": SYSTEM}]),
            "gen_ai.input.messages": _json(
                [
                    OTEL_INPUT[1],
                    OTEL_INPUT[2],
                    {
                        "role": "user",
                        "parts": [{"type": "tool_call_response", "id": CALL_ID, "result": RESULT}],
                    },
                ]
            ),
            "gen_ai.output.messages": _json(OTEL_OUTPUT),
        },
        scope="pydantic-ai",
    ),
    "Pydantic AI 1": span({**_CHAT, "events": _json(_PYDANTIC_V1_EVENTS)}, scope="pydantic-ai"),
    "Logfire": span(
        {
            **_CHAT,
            "logfire.msg": "Chat Completion",
            "request_data": _json({"messages": OPENAI_INPUT, "model": "gpt-4o-mini"}),
            "response_data": _json({"message": OPENAI_OUTPUT, "usage": None}),
        }
    ),
    "Logfire, streamed": span(
        {
            **_CHAT,
            "logfire.span_type": "log",
            "request_data": _json({"messages": OPENAI_INPUT, "stream": True}),
            "response_data": _json({"combined_chunk_content": ANSWER, "chunk_count": 3}),
        }
    ),
    "Langfuse, OpenAI": span(
        {
            "langfuse.observation.type": "generation",
            "langfuse.observation.input": _json({"tools": [], "messages": OPENAI_INPUT}),
            "langfuse.observation.output": _json(OPENAI_OUTPUT),
        }
    ),
    "Langfuse, list and bare text": span(
        {
            "langfuse.observation.type": "generation",
            "langfuse.observation.input": _json(OPENAI_INPUT),
            "langfuse.observation.output": ANSWER,
        }
    ),
    "MLflow, OpenAI": span(
        {
            "mlflow.spanType": '"CHAT_MODEL"',
            "mlflow.spanInputs": _json({"messages": OPENAI_INPUT}),
            "mlflow.spanOutputs": _json({"choices": [{"index": 0, "message": OPENAI_OUTPUT}]}),
        }
    ),
    "MLflow, Anthropic, encoded twice": span(
        {
            "mlflow.spanType": '"LLM"',
            "mlflow.spanInputs": _twice(ANTHROPIC_REQUEST),
            "mlflow.spanOutputs": _twice(ANTHROPIC_RESPONSE),
        }
    ),
    "MLflow, Responses": span(
        {
            "mlflow.spanType": '"CHAT_MODEL"',
            "mlflow.spanInputs": _json(RESPONSES_REQUEST),
            "mlflow.spanOutputs": _json(RESPONSES_RESPONSE),
        }
    ),
    "MLflow, LangChain": span(
        {
            "mlflow.spanType": '"CHAT_MODEL"',
            "mlflow.spanInputs": _json([LANGCHAIN_DUMPED]),
            "mlflow.spanOutputs": _json(LANGCHAIN_RESPONSE),
        }
    ),
    "LangSmith": span(
        {
            "langsmith.span.kind": "llm",
            "gen_ai.prompt": _json(LANGCHAIN_REQUEST),
            "gen_ai.completion": _json(LANGCHAIN_RESPONSE),
        }
    ),
    "Google ADK 1": span(
        {
            "gen_ai.system": "gcp.vertex.agent",
            "gcp.vertex.agent.llm_request": _json(GEMINI_REQUEST),
            "gcp.vertex.agent.llm_response": _json(GEMINI_RESPONSE),
        },
        name="call_llm",
    ),
    "Google ADK 2": span(
        {
            "gen_ai.operation.name": "generate_content",
            "gen_ai.system_instructions": SYSTEM,
            "gen_ai.input.messages": _json(OTEL_INPUT[1:]),
            "gen_ai.output.messages": _json(OTEL_OUTPUT),
        },
        scope="gcp.vertex.agent",
    ),
    "Strands, events": span(_CHAT, scope="strands.telemetry.tracer", events=_STRANDS_EVENTS),
    "Semantic Kernel, body as JSON": span(
        _CHAT, scope="semantic_kernel.x", logs=_message_logs(_json)
    ),
    "Agent Framework": span(_CHAT, scope="agent_framework", logs=_message_logs()),
    "Azure AI": span(_CHAT, events=_azure_events()),
    "Claude Code": span(
        {
            "span.type": "llm_request",
            "user_system_prompt": SYSTEM,
            "new_context": _json(ANTHROPIC_REQUEST["messages"]),
            "response.model_output": ANSWER,
        },
        name="claude_code.llm_request",
        scope="com.anthropic.claude_code.tracing",
    ),
    "Gemini CLI": span(
        {
            "gen_ai.operation.name": "llm_call",
            "gen_ai.system_instructions": SYSTEM,
            "gen_ai.input.messages": _json(GEMINI_REQUEST["contents"]),
            "gen_ai.output.messages": ANSWER,
        },
        service="gemini-cli",
    ),
    "LiteLLM 1": span(
        {
            **_CHAT,
            "gen_ai.input.messages": _json(OTEL_INPUT),
            "gen_ai.output.messages": _json(OTEL_OUTPUT),
        },
        name="litellm_request",
        scope="litellm",
    ),
    "Haystack": span(
        {
            "haystack.component.type": "OpenAIChatGenerator",
            "haystack.component.input": _json({"messages": HAYSTACK_MESSAGES}),
            "haystack.component.output": _json(
                {"replies": [{"role": "assistant", "content": [{"text": ANSWER}], "meta": {}}]}
            ),
        },
        name="haystack.component.run",
    ),
    "Laminar": span(
        {
            "lmnr.span.type": "LLM",
            "lmnr.span.input": _json(OPENAI_INPUT),
            "lmnr.span.output": _json([OPENAI_OUTPUT]),
        }
    ),
    "LiveKit": span(
        {
            "gen_ai.operation.name": "chat",
            "lk.chat_ctx": _json(
                {
                    "items": [
                        {"type": "message", "role": "system", "content": [SYSTEM]},
                        {"type": "message", "role": "user", "content": [ASKED]},
                        {
                            "type": "function_call",
                            "call_id": CALL_ID,
                            "name": TOOL,
                            "arguments": _ARGUMENTS_TEXT,
                        },
                        {"type": "function_call_output", "call_id": CALL_ID, "output": RESULT},
                    ]
                }
            ),
            "lk.response.text": ANSWER,
        }
    ),
    "VoltAgent": span(
        {
            "gen_ai.operation.name": "chat",
            "llm.messages": _json(OPENAI_INPUT),
            "output.value": ANSWER,
            "llm.token_count.completion": 3,
        }
    ),
    "Genkit": span(
        {
            "genkit:type": "action",
            "genkit:metadata:subtype": "model",
            "genkit:input": _json(
                {
                    "messages": [
                        {"role": "system", "content": [{"text": SYSTEM}]},
                        {"role": "user", "content": [{"text": ASKED}]},
                        {
                            "role": "model",
                            "content": [
                                {"toolRequest": {"ref": CALL_ID, "name": TOOL, "input": ARGUMENTS}}
                            ],
                        },
                        {
                            "role": "tool",
                            "content": [
                                {"toolResponse": {"ref": CALL_ID, "name": TOOL, "output": RESULT}}
                            ],
                        },
                    ]
                }
            ),
            "genkit:output": _json({"message": {"role": "model", "content": [{"text": ANSWER}]}}),
        }
    ),
    "Langtrace": span(
        {
            "gen_ai.operation.name": "chat",
            "llm.prompts": _json(OPENAI_INPUT),
            "llm.completions": _json([OPENAI_OUTPUT]),
        },
        scope="langtrace-python-sdk",
    ),
}
