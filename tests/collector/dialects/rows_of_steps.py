"""Rows of the mapping table: what a step is, tools, retrieval, identity, prompts."""

from __future__ import annotations

from collections.abc import Sequence

from hansard_collector.dialects.engine.normal_form import Normalised
from tests.collector.dialects.maker import event, log
from tests.collector.dialects.rows import (
    INVOCATION,
    LLM,
    TOOL,
    Given,
    Row,
    as_json,
    keys,
    said,
)

KIND = Row(
    "kind",
    lambda shown: shown.role,
    [
        Given({"hansard.kind": "human_approval"}, "approval"),
        Given({"openinference.span.kind": "Retriever"}, "retriever"),
        Given({"langfuse.observation.type": "generation"}, "llm"),
        Given({"mlflow.spanType": '"RERANKER"'}, "rerank"),
        Given({"langsmith.span.kind": "prompt"}, "prompt"),
        Given({"span.type": "llm_request"}, "llm"),
        Given({"spring.ai.kind": "advisor"}, "chain"),
        Given({"ai.operationId": "ai.embed.doEmbed"}, "embedding"),
        Given({"lmnr.span.type": "EVALUATOR"}, "evaluator"),
        Given({"mcp.method.name": "tools/list"}, "mcp"),
        Given({"gen_ai.operation.name": "invoke_workflow"}, "workflow"),
        Given({"traceloop.span.kind": "task"}, "task"),
        Given({"llm.request.type": "rerank"}, "rerank"),
        Given({"haystack.component.type": "InMemoryBM25Retriever"}, "retriever"),
        Given({"gen_ai.request.model": "m"}, "llm"),
        Given({"http.route": "/v1/messages"}, "other"),
    ],
)

_CONTENT_IN = (
    "hansard.input",
    "input.value",
    "langfuse.observation.input",
    "traceloop.entity.input",
    "mlflow.spanInputs",
    "haystack.component.input",
    "haystack.pipeline.input_data",
    "haystack.agent.input",
)

GENERIC_INPUT = Row(
    "generic input",
    lambda shown: shown.input,
    [
        *keys(*_CONTENT_IN),
        Given(
            {"gen_ai.input.messages": said("user", "hi")},
            [{"role": "user", "parts": [{"type": "text", "text": "hi"}]}],
        ),
        *keys("user_prompt", "langfuse.trace.input"),
    ],
    {"openinference.span.kind": "CHAIN"},
)

GENERIC_OUTPUT = Row(
    "generic output",
    lambda shown: shown.output,
    [
        *keys(
            "hansard.output",
            "output.value",
            "langfuse.observation.output",
            "traceloop.entity.output",
            "mlflow.spanOutputs",
            "haystack.component.output",
            "haystack.pipeline.output_data",
            "haystack.agent.output",
        ),
        Given(
            {"gen_ai.output.messages": said("assistant", "yo")},
            [{"role": "assistant", "parts": [{"type": "text", "text": "yo"}]}],
        ),
        *keys("final_result", "langfuse.trace.output"),
    ],
    {"openinference.span.kind": "CHAIN"},
)

TOOL_NAME = Row(
    "tool.name",
    lambda shown: shown.tool and shown.tool.name,
    [
        *keys(
            "gen_ai.tool.name",
            "tool.name",
            "ai.toolCall.name",
            "spring.ai.tool.definition.name",
            "haystack.tool.name",
            "tool_name",
        ),
        *keys("traceloop.entity.name"),
        Given({}, "claude_code.test"),  # the span's own name, when nothing else tells
    ],
    TOOL,
)

TOOL_CALL_ID = Row(
    "tool.call_id",
    lambda shown: shown.tool and shown.tool.call_id,
    keys(
        "gen_ai.tool.call.id",
        "gen_ai.tool.call_id",
        "tool.id",
        "tool_call.id",
        "ai.toolCall.id",
        "spring.ai.tool.call.id",
        "haystack.tool.call.id",
        "tool_use_id",
        "call_id",
    ),
    TOOL,
)


def _arguments(*keys: str, start: int = 0) -> list[Given]:
    """JSON is opened: arguments are shown as an object."""
    return [
        Given({key: as_json({"n": start + at})}, {"n": start + at}) for at, key in enumerate(keys)
    ]


TOOL_ARGUMENTS = Row(
    "tool.arguments",
    lambda shown: shown.tool and shown.tool.arguments,
    [
        *_arguments(
            "gen_ai.tool.call.arguments",
            "ai.toolCall.args",
            "spring.ai.tool.call.arguments",
            "gcp.vertex.agent.tool_call_args",
            "tool_arguments",
        ),
        Given(
            {},
            {"city": "Paris"},
            events=[event("gen_ai.tool.message", {"role": "tool", "content": '{"city": "Paris"}'})],
        ),
        *_arguments("tool_input", "tool_parameters", start=20),
        Given({"full_command": "ls"}, {"full_command": "ls"}),
        Given({"file_path": "/a"}, {"file_path": "/a"}),
        *_arguments(
            "arguments",
            "input.value",
            "tool.parameters",
            "haystack.agent.step.tool.input",
            "mcp.request.argument",
            "traceloop.entity.input",
            "langfuse.observation.input",
            "mlflow.spanInputs",
            start=40,
        ),
    ],
    TOOL,
)

TOOL_RESULT = Row(
    "tool.result",
    lambda shown: shown.tool and shown.tool.result,
    [
        *keys(
            "gen_ai.tool.call.result",
            "ai.toolCall.result",
            "spring.ai.tool.call.result",
            "gcp.vertex.agent.tool_response",
            "tool_response",
        ),
        Given({}, "blocks", events=[event("gen_ai.choice", {"message": '[{"text": "blocks"}]'})]),
        Given({}, "out", events=[event("tool.output", {"output": "out"})]),
        *keys(
            "new_context",
            "output",
            "output.value",
            "haystack.agent.step.tool.output",
            "mcp.response.value",
            "traceloop.entity.output",
            "langfuse.observation.output",
            "mlflow.spanOutputs",
            values=lambda at: f"result {at}",
        ),
    ],
    TOOL,
)

TOOL_DESCRIPTION = Row(
    "tool.description",
    lambda shown: shown.tool and shown.tool.description,
    keys(
        "gen_ai.tool.description",
        "tool.description",
        "spring.ai.tool.definition.description",
        "haystack.tool.description",
    ),
    TOOL,
)

TOOL_TYPE = Row(
    "tool.type",
    lambda shown: shown.tool and shown.tool.type,
    keys("gen_ai.tool.type", "spring.ai.tool.type"),
    TOOL,
)

_TL = "traceloop.association.properties"

_VA = "ai.telemetry.metadata"

CONVERSATION = Row(
    "conversation / session",
    lambda shown: shown.conversation_id,
    [
        *keys(
            "gen_ai.conversation.id",
            "session.id",
            "langfuse.session.id",
            f"{_TL}.session_id",
            f"{_TL}.thread_id",
            f"{_TL}.chat_id",
            f"{_TL}.conversation_id",
            f"{_VA}.sessionId",
            f"{_VA}.threadId",
        ),
        Given({"mlflow.trace.session": '"quoted"'}, "quoted"),
        *keys(
            "langsmith.metadata.session_id",
            "langsmith.metadata.thread_id",
            "langsmith.metadata.conversation_id",
            "gcp.vertex.agent.session_id",
            "spring.ai.chat.client.conversation.id",
            "conversation.id",
            "mcp.session.id",
        ),
        Given({"metadata": '{"thread_id": "th"}'}, "th"),
        Given({INVOCATION: '{"metadata": {"session_id": "s"}}'}, "s"),
    ],
    LLM,
    {},
)

USER = Row(
    "user",
    lambda shown: shown.user_id,
    [
        *keys(
            "user.id",
            "enduser.id",
            "langfuse.user.id",
            f"{_TL}.user_id",
            "gen_ai.user",
            "llm.user",
            f"{_VA}.userId",
        ),
        Given({"mlflow.trace.user": '"quoted"'}, "quoted"),
        *keys("langsmith.metadata.user_id", "litellm.end_user.id"),
        *keys("metadata.user_api_key_end_user_id"),
        Given({"metadata": '{"user_id": "u"}'}, "u"),
        *keys("user.account_uuid", "user.email", "gen_ai.request.user"),
        Given({INVOCATION: '{"user": "u"}'}, "u"),
    ],
    LLM,
)

AGENT_NAME = Row(
    "agent.name",
    lambda shown: shown.agent_name,
    [
        *keys(
            "gen_ai.agent.name",
            "agent.name",
            "graph.node.name",
            "agent_name",
            "ai.telemetry.functionId",
            "traceloop.entity.name",
            "subagent_type",
        ),
        Given({"metadata": '{"lc_agent_name": "clerk"}'}, "clerk"),
        *keys(
            "langsmith.metadata.lc_agent_name",
            "traceloop.association.properties.lc_agent_name",
        ),
    ],
    {"openinference.span.kind": "AGENT"},
)

AGENT_ID = Row(
    "agent.id",
    lambda shown: shown.agent_id,
    keys("gen_ai.agent.id", "graph.node.id", "agent_id", "executor.id"),
)

AGENT_DESCRIPTION = Row(
    "agent.description",
    lambda shown: shown.agent_description,
    keys("gen_ai.agent.description"),
)

WORKFLOW = Row(
    "workflow.name",
    lambda shown: shown.workflow_name,
    keys(
        "gen_ai.workflow.name",
        "traceloop.workflow.name",
        "workflow.name",
        "langfuse.trace.name",
        "langsmith.trace.name",
    ),
)

_RETRIEVER = {"openinference.span.kind": "RETRIEVER"}

QUERY = Row(
    "retrieval.query",
    lambda shown: shown.query,
    [
        *keys(
            "gen_ai.retrieval.query.text",
            "gen_ai.memory.query.text",
            "reranker.query",
            "input.value",
            "db.vector.query.content",
        ),
        Given({"haystack.component.input": '{"query": "q"}'}, "q"),
    ],
    _RETRIEVER,
)


def _shown_documents(shown: Normalised) -> list[tuple[str | None, str | None, float | None]]:
    return [(found.id, found.content, found.score) for found in shown.documents]


DOCUMENTS = Row(
    "retrieval.documents",
    _shown_documents,
    [
        Given(
            {"gen_ai.retrieval.documents": as_json([{"id": "0", "content": "c", "score": 0.5}])},
            [("0", "c", 0.5)],
        ),
        Given({"gen_ai.memory.records": [{"id": "1", "content": "c"}]}, [("1", "c", None)]),
        Given(
            {
                "retrieval.documents.0.document.id": "2",
                "retrieval.documents.0.document.content": "c",
                "retrieval.documents.0.document.score": 0.25,
            },
            [("2", "c", 0.25)],
        ),
        Given({"reranker.output_documents.0.document.id": "3"}, [("3", None, None)]),
        Given({"reranker.input_documents.0.document.id": "4"}, [("4", None, None)]),
        Given(
            {"db.vector.query.response.documents": as_json([{"id": "5", "content": "c"}])},
            [("5", "c", None)],
        ),
        Given(
            {},
            [("6", "c", 0.1)],
            events=[
                event(
                    "db.query.result",
                    {
                        "db.query.result.id": "6",
                        "db.query.result.score": 0.1,
                        "db.query.result.document": "c",
                    },
                )
            ],
        ),
        Given(
            {
                "haystack.component.output": as_json(
                    {"documents": [{"id": "7", "content": "c", "score": 1, "meta": {}}]}
                )
            },
            [("7", "c", 1.0)],
        ),
    ],
    _RETRIEVER,
)

SCORE = Row(
    "score",
    lambda shown: shown.evaluations[0],
    [
        Given(
            {},
            {"name": "good", "score": 0.5, "label": "ok"},
            logs=[
                log(
                    "gen_ai.evaluation.result",
                    {
                        "gen_ai.evaluation.name": "good",
                        "gen_ai.evaluation.score.value": 0.5,
                        "gen_ai.evaluation.score.label": "ok",
                    },
                )
            ],
        ),
        Given(
            {"evaluations.0.evaluation.name": "n", "evaluations.0.evaluation.score": 1},
            {"name": "n", "score": 1},
        ),
        Given({"trace.evaluations.0.evaluation.name": "n"}, {"name": "n", "level": "trace"}),
        Given({"annotations.0.annotation.label": "l"}, {"label": "l"}),
        Given({"output.value": '{"score": 2}'}, {"score": 2}),
        Given({"pydantic_ai.decision.confidence": 0.75}, {"name": "confidence", "score": 0.75}),
    ],
    {"openinference.span.kind": "EVALUATOR"},
)

PROMPT = Row(
    "prompt template",
    lambda shown: shown.prompt.get("name") or shown.prompt.get("template") or shown.prompt,
    [
        Given({"gen_ai.prompt.name": "greeting"}, "greeting"),
        Given({"llm.prompt_template.template": "Hi {x}"}, "Hi {x}"),
    ],
)

PROMPT_NAME = Row(
    "prompt template: name",
    lambda shown: shown.prompt.get("name"),
    [
        *keys("gen_ai.prompt.name", "langfuse.observation.prompt.name", "traceloop.prompt.key"),
        Given({f"{_VA}.langfusePrompt": '{"name": "lf"}'}, "lf"),
    ],
)

PROMPT_VARIABLES = Row(
    "prompt template: variables",
    lambda shown: shown.prompt.get("variables"),
    [
        Given({"gen_ai.prompt.variable.x": "1"}, {"x": "1"}),
        Given({"llm.prompt_template.variables": '{"x": "2"}'}, {"x": "2"}),
        Given({"traceloop.prompt.template_variables": '{"x": "3"}'}, {"x": "3"}),
    ],
)

TAGS = Row(
    "tags",
    lambda shown: shown.tags,
    [
        Given({"hansard.run.tags": ["nightly"]}, ("nightly",)),
        Given({"tag.tags": ["a", "b"]}, ("a", "b")),
        Given({"langfuse.trace.tags": ["c"]}, ("c",)),
        Given({f"{_VA}.tags": ["d"]}, ("d",)),
        Given({"langsmith.span.tags": "e, f"}, ("e", "f")),
        Given({"logfire.tags": ["g"]}, ("g",)),
    ],
)

METADATA = Row(
    "metadata",
    lambda shown: shown.metadata.get("tier"),
    [
        Given({"hansard.run.metadata.tier": "own"}, "own"),
        Given({"metadata": '{"tier": "0"}'}, "0"),
        Given({"langfuse.observation.metadata.tier": '"1"'}, "1"),
        Given({"langfuse.trace.metadata.tier": '"2"'}, "2"),
        Given({f"{_VA}.tier": "3"}, "3"),
        Given({f"{_TL}.tier": "4"}, "4"),
        Given({"langsmith.metadata.tier": "5"}, "5"),
        Given({"metadata.tier": "6"}, "6"),
        Given({"litellm.metadata.tier": "7"}, "7"),
    ],
    LLM,
)

DISPLAY_NAME = Row(
    "display name",
    lambda shown: shown.name,
    [
        Given({"logfire.msg": "running tool: f"}, "running tool: f"),
        Given({"ai.operationId": "ai.generateText", "ai.telemetry.functionId": "fn"}, "fn"),
        Given({"ai.operationId": "ai.toolCall", "ai.telemetry.functionId": "fn"}, None),
    ],
)

ROWS: Sequence[Row] = [value for value in globals().values() if isinstance(value, Row)]
