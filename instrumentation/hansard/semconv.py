"""Every attribute, event and link name the SDK writes, with its type and meaning.

Upstream names where there are any: `gen_ai.*` as of the GenAI conventions' own repository in
November 2026 (it has no numbered release), which the package opentelemetry-semantic-conventions
0.66b2 still carries. Ours begin with `hansard.` and are versioned by `hansard.schema_version`.
"""

from __future__ import annotations

from typing import Final

SCOPE_NAME: Final = "hansard"
# The newest schema that carries the names below; upstream moved gen_ai.* out after it.
SCHEMA_URL: Final = "https://opentelemetry.io/schemas/1.41.0"
SCHEMA_VERSION: Final = "1"  # of hansard.*

# ---- upstream

OPERATION_NAME: Final = "gen_ai.operation.name"
AGENT_NAME: Final = "gen_ai.agent.name"
CONVERSATION_ID: Final = "gen_ai.conversation.id"
TOOL_NAME: Final = "gen_ai.tool.name"
TOOL_CALL_ID: Final = "gen_ai.tool.call.id"
TOOL_TYPE: Final = "gen_ai.tool.type"
TOOL_DESCRIPTION: Final = "gen_ai.tool.description"
TOOL_CALL_ARGUMENTS: Final = "gen_ai.tool.call.arguments"
TOOL_CALL_RESULT: Final = "gen_ai.tool.call.result"
CODE_FUNCTION_NAME: Final = "code.function.name"
ERROR_TYPE: Final = "error.type"
SERVICE_NAME: Final = "service.name"
SERVICE_INSTANCE_ID: Final = "service.instance.id"

OP_INVOKE_AGENT: Final = "invoke_agent"
OP_EXECUTE_TOOL: Final = "execute_tool"

# ---- ours

HANSARD_SCHEMA_VERSION: Final = "hansard.schema_version"
INPUT: Final = "hansard.input"
OUTPUT: Final = "hansard.output"
KIND: Final = "hansard.kind"
CANCELLED: Final = "hansard.cancelled"
RUN_DOMAIN: Final = "hansard.run.domain"
RUN_GOAL: Final = "hansard.run.goal"
REF_SUFFIX: Final = "_ref"
SIZE_SUFFIX: Final = "_size"

EVENT_PAYLOAD: Final = "hansard.payload"
EVENT_PULSE: Final = "hansard.pulse"
EVENT_LOSS: Final = "hansard.loss"
PAYLOAD_DIGEST: Final = "hansard.payload.digest"
PAYLOAD_MEDIA_TYPE: Final = "hansard.payload.media_type"
