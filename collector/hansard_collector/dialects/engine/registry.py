"""Which dialects a span speaks: by scope, by the prefixes of its keys, by its name.

Scopes can be forged and are often wrong (users pass their own tracer), so keys count as much. A
span may speak several dialects; the first in this list gives its label, and all of them open the
sources of the table that need them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class Dialect(NamedTuple):
    name: str
    scopes: tuple[str, ...] = ()  # prefixes; one that ends in a blank is the whole name
    keys: tuple[str, ...] = ()  # prefixes of attribute keys
    spans: tuple[str, ...] = ()  # prefixes of span names
    services: tuple[str, ...] = ()  # whole values of the resource's service.name


DIALECTS: tuple[Dialect, ...] = (
    Dialect("hansard", scopes=("hansard",), keys=("hansard.",), spans=("hansard.",)),
    Dialect(
        "claude_code",
        scopes=("com.anthropic.claude_code",),
        spans=("claude_code.",),
        services=("claude-code",),
    ),
    Dialect("anthropic_sdk", scopes=("com.anthropic.sdk.", "com.anthropic.claude-platform")),
    Dialect(
        "codex",
        scopes=("codex",),
        keys=("codex.",),
        services=("codex_cli_rs", "codex_exec", "codex_tui"),
    ),
    Dialect("gemini_cli", scopes=("gemini-cli",), services=("gemini-cli",)),
    Dialect("langfuse", scopes=("langfuse",), keys=("langfuse.",)),
    Dialect("mlflow", scopes=("mlflow",), keys=("mlflow.",)),
    Dialect("langsmith", scopes=("langsmith",), keys=("langsmith.",)),
    Dialect("google_adk", scopes=("gcp.vertex.agent",), keys=("gcp.vertex.agent.",)),
    Dialect("strands", scopes=("strands.",)),
    Dialect(
        "agent_framework",
        scopes=("agent_framework", "Experimental.Microsoft.Agents", "Microsoft.Agents"),
        keys=("microsoft.agent_framework",),
    ),
    Dialect("semantic_kernel", scopes=("semantic_kernel", "Microsoft.SemanticKernel")),
    Dialect("autogen", scopes=("autogen",), spans=("autogen ",)),
    Dialect("azure_ai", scopes=("azure.",), keys=("az.",)),
    Dialect("pydantic_ai", scopes=("pydantic-ai",), keys=("pydantic_ai.",)),
    Dialect("logfire_agents", scopes=("logfire.openai_agents",)),
    Dialect("logfire", scopes=("logfire",), keys=("logfire.",)),
    Dialect("litellm", scopes=("litellm",), keys=("litellm.",), spans=("raw_gen_ai_request",)),
    Dialect("agentops", scopes=("agentops",), keys=("agentops.",)),
    Dialect("mastra", scopes=("@mastra/",), keys=("mastra.",)),
    Dialect("traceai", scopes=("traceai", "fi_instrumentation"), keys=("gen_ai.span.kind", "fi.")),
    Dialect("llamaindex", scopes=("llamaindex.",), keys=("llamaindex.",)),
    Dialect("haystack", scopes=("haystack",), keys=("haystack.",), spans=("haystack.",)),
    Dialect("spring_ai", keys=("spring.ai.",)),
    Dialect("vercel_ai", scopes=("ai ", "gen_ai "), keys=("ai.",)),
    Dialect(
        "traceloop",
        scopes=("traceloop",),
        keys=("traceloop.", "llm.request.type", "llm.is_streaming"),
    ),
    Dialect("openlit", scopes=("openlit",)),
    Dialect("langtrace", scopes=("langtrace",), keys=("langtrace.",)),
    Dialect("laminar", scopes=("lmnr",), keys=("lmnr.",)),
    Dialect("livekit", scopes=("livekit",), keys=("lk.",)),
    Dialect("voltagent", scopes=("voltagent", "@voltagent/"), keys=("voltagent.",)),
    Dialect("genkit", scopes=("genkit",), keys=("genkit:",)),
    Dialect(
        "openinference",
        scopes=("openinference.", "@arizeai/openinference"),
        keys=("openinference.", "llm.", "embedding.", "reranker.", "retrieval."),
    ),
    Dialect("mcp", scopes=("mcp",), keys=("mcp.",)),
    Dialect("gen_ai", keys=("gen_ai.",)),
)

UNKNOWN = "otel"


# Coding agents, which may send log records alone: runs are made of those.
_AGENTS = ("claude_code", "codex", "gemini_cli")


def is_coding_agent(*, scope_name: str, service_name: str | None) -> bool:
    """Whether log records of this scope and service are of an agent whose logs make runs."""
    return any(
        service_name in dialect.services or (scope_name + " ").startswith(dialect.scopes)
        for dialect in DIALECTS
        if dialect.name in _AGENTS
    )


def dialects_of(
    *, scope_name: str, service_name: object, span_name: str, keys: Iterable[str]
) -> tuple[str, ...]:
    """Return the dialects that a span speaks, in the order of the list."""
    scope = scope_name + " "
    sent = tuple(keys)
    return tuple(
        dialect.name
        for dialect in DIALECTS
        if scope.startswith(dialect.scopes)
        or service_name in dialect.services
        or span_name.startswith(dialect.spans)
        or any(key.startswith(dialect.keys) for key in sent)
    )
