"""The attribute, event and link names the SDK writes; docs/semantic-conventions.md explains each.

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
EXCEPTION_TYPE: Final = "exception.type"
EXCEPTION_MESSAGE: Final = "exception.message"
EXCEPTION_STACKTRACE: Final = "exception.stacktrace"
SERVICE_NAME: Final = "service.name"
SERVICE_INSTANCE_ID: Final = "service.instance.id"

EVENT_EXCEPTION: Final = "exception"
EVENT_EVALUATION: Final = "gen_ai.evaluation.result"
EVALUATION_NAME: Final = "gen_ai.evaluation.name"
EVALUATION_VALUE: Final = "gen_ai.evaluation.score.value"
EVALUATION_LABEL: Final = "gen_ai.evaluation.score.label"
EVALUATION_EXPLANATION: Final = "gen_ai.evaluation.explanation"

OP_INVOKE_AGENT: Final = "invoke_agent"
OP_EXECUTE_TOOL: Final = "execute_tool"
OP_SEARCH_MEMORY: Final = "search_memory"
OP_UPSERT_MEMORY: Final = "upsert_memory"
OP_UPDATE_MEMORY: Final = "update_memory"
MEMORY_STORE_ID: Final = "gen_ai.memory.store.id"
MEMORY_RECORD_ID: Final = "gen_ai.memory.record.id"
MEMORY_RECORD_COUNT: Final = "gen_ai.memory.record.count"
MEMORY_QUERY: Final = "gen_ai.memory.query.text"
MEMORY_RECORDS: Final = "gen_ai.memory.records"  # ids and standing, no content

# of calls of models
PROVIDER_NAME: Final = "gen_ai.provider.name"
REQUEST_MODEL: Final = "gen_ai.request.model"
RESPONSE_MODEL: Final = "gen_ai.response.model"
INPUT_MESSAGES: Final = "gen_ai.input.messages"
OUTPUT_MESSAGES: Final = "gen_ai.output.messages"
SYSTEM_INSTRUCTIONS: Final = "gen_ai.system_instructions"
TOOL_DEFINITIONS: Final = "gen_ai.tool.definitions"
STOP_SEQUENCES: Final = "gen_ai.request.stop_sequences"
TIME_TO_FIRST_CHUNK: Final = "gen_ai.response.time_to_first_chunk"
RESEND_COUNT: Final = "http.request.resend_count"
RESPONSE_BODY_SIZE: Final = "http.response.body.size"
SERVER_ADDRESS: Final = "server.address"
SERVER_PORT: Final = "server.port"

# ---- ours

SPAN_COMPILE: Final = "hansard.compile"
SPAN_POLICY_CHECK: Final = "hansard.policy.check"

HANSARD_SCHEMA_VERSION: Final = "hansard.schema_version"
INPUT: Final = "hansard.input"
OUTPUT: Final = "hansard.output"
OUTPUT_ITEMS: Final = "hansard.output.items"
KIND: Final = "hansard.kind"
CANCELLED: Final = "hansard.cancelled"
RUN_DOMAIN: Final = "hansard.run.domain"
RUN_GOAL: Final = "hansard.run.goal"
REF_SUFFIX: Final = "_ref"
SIZE_SUFFIX: Final = "_size"

EVENT_PAYLOAD: Final = "hansard.payload"
EVENT_KEEPALIVE: Final = "hansard.keepalive"
EVENT_DROPPED: Final = "hansard.dropped"
PAYLOAD_DIGEST: Final = "hansard.payload.digest"
PAYLOAD_MEDIA_TYPE: Final = "hansard.payload.media_type"

# Of hansard.keepalive: this process is alive, and these traces have open spans of it.
KEEPALIVE_TRACES: Final = "hansard.keepalive.trace_ids"  # string[], 32 hex digits each
KEEPALIVE_INTERVAL_MS: Final = "hansard.keepalive.interval_ms"  # int; when to expect the next one
KEEPALIVE_LAST: Final = "hansard.keepalive.last"  # bool; the process ends, so these spans will not
# Of hansard.dropped: what a process dropped before it reached the collector, since its start.
DROPPED_SIGNAL: Final = "hansard.dropped.signal"  # "spans" or "logs"
DROPPED_REASON: Final = "hansard.dropped.reason"  # one of hansard._export.dropped.Reason
DROPPED_ITEMS: Final = "hansard.dropped.items"  # int; only ever grows

# Of compiles, and of the calls made of them; the columns are named in hansard_compiler.
COMPILE_ID: Final = "hansard.compilation.id"
COMPILE_STABLE_PREFIX_HASH: Final = "hansard.compilation.stable_prefix_hash"
COMPILE_VOLATILE_SUFFIX_HASH: Final = "hansard.compilation.volatile_suffix_hash"
COMPILE_REQUEST_REF: Final = "hansard.compilation.request_ref"
COMPILE_RESULT_REF: Final = "hansard.compilation.result_ref"
COMPILE_POLICY_REF: Final = "hansard.compilation.policy_ref"
COMPILE_WHOLE: Final = "hansard.compilation.request_whole"  # bool; see convention
COMPILE_PORTS: Final = "hansard.compilation.ports"  # string[]
POLICY_CHECKS_REF: Final = "hansard.policy.checks_ref"
RECIPE: Final = "hansard.recipe"  # .ref
REQUEST_OMITTED: Final = "hansard.request.omitted"  # content; a list of sentences
TOKENS_ESTIMATED: Final = "hansard.tokens.estimated"  # int; of the input, before sending
TOKENS_ESTIMATOR: Final = "hansard.tokens.estimator"
CALL_INCOMPLETE_REASON: Final = "hansard.call.incomplete_reason"  # code: why it is not whole
ERROR_CODE: Final = "hansard.error.code"  # of a HansardError
ERROR_RETRYABLE: Final = "hansard.error.retryable"  # bool
ERROR_RETRY_AFTER_S: Final = "hansard.error.retry_after_s"  # double
ERROR_PROVIDER_CODE: Final = "hansard.error.provider_code"
EVENT_TOKEN_COUNT: Final = "hansard.token_count"  # the provider counted the tokens

# Of transcripts, on the step that goes on with one.
TRANSCRIPT_ID: Final = "hansard.transcript.id"
TRANSCRIPT_HEAD: Final = "hansard.transcript.head"  # int
TRANSCRIPT_PREFIX_HASH: Final = "hansard.transcript.prefix_hash"

# Of memory, beside upstream's names.
MEMORY_WRITER: Final = "hansard.memory.writer"
MEMORY_TYPE: Final = "hansard.memory.type"
MEMORY_OUTCOME: Final = "hansard.memory.outcome"

# Of sessions: what `start_run`, `step` and `record_tool_…` tell.
USER_ID: Final = "user.id"
RUN_TAGS: Final = "hansard.run.tags"  # string[]
RUN_METADATA: Final = "hansard.run.metadata."  # prefix; the rest is the key, text, number or flag
STEP_METADATA: Final = "hansard.step.metadata."  # prefix, the same of a step
STEP_INDEX: Final = "hansard.step.index"  # int; how many steps of the run were begun before
STEP_INPUT_REFS: Final = "hansard.step.input_refs"  # string[]; payloads, each a list of items
UNENDED: Final = "hansard.unended"  # bool; the program never ended it, its run or its end did
TOOL_RECORDED_PART: Final = "hansard.tool.recorded_part"  # the only one: "call" or "result"
LINK_TYPE: Final = (
    "hansard.link.type"  # of a link: "caller", the span in which a run was started; "replay_of";
)
# "approval_request", the span of the call that waited for the decision
REPLAY_OF: Final = "hansard.replay.of"  # step id: what this run, compile or call is a replay of
REPLAY_MODE: Final = "hansard.replay.mode"  # exact mutated forward
REPLAY_ID: Final = "hansard.replay.id"
REPLAY_RECORDED: Final = "hansard.replay.recorded"  # bool; answered from the recording
REPLAY_REBUILT: Final = "hansard.replay.rebuilt"  # bool; the request was rebuilt from telemetry
REPLAY_LIVE: Final = "hansard.replay.live"  # bool; past the recording, on request
REPLAY_RESULT: Final = "hansard.replay.result"  # "recorded" or "hand": no tool ran for it
REPLAY_RESULT_BY: Final = "hansard.replay.result_by"  # who gave a result by hand
BAGGAGE_RUN_ID: Final = "hansard.run.id"  # in baggage, never on a span: that is its trace id
EVENT_DUPLICATE_RESULT: Final = "hansard.tool.duplicate_result"  # of an answered call

# Of the audit log: its head, sent once a day, so that its end cannot be cut off unseen.
SPAN_EVENTS_HEAD: Final = "hansard.events.head"
EVENTS_SEQ: Final = "hansard.events.seq"  # int
EVENTS_HASH: Final = "hansard.events.hash"  # 64 hex digits

# Of gated tool calls: a mirror of what the store has, never the record.
TOOL_EFFECT: Final = "hansard.tool.effect"  # "read" or "write"
APPROVAL_ID: Final = "hansard.approval.id"
APPROVAL_STATUS: Final = "hansard.approval.status"
APPROVAL_ARGUMENTS_HASH: Final = "hansard.approval.arguments_hash"
APPROVAL_BY: Final = "hansard.approval.by"
APPROVAL_TOOL: Final = "hansard.approval.tool"
APPROVAL_REASON: Final = "hansard.approval.reason"
APPROVAL_RECEIPTS: Final = "hansard.approval.receipts"  # string[]
APPROVAL_CHANGED: Final = "hansard.approval.changed"  # string[]
APPROVAL_RULE_IDS: Final = "hansard.approval.rule_ids"  # string[]
EVENT_GATE_ALLOWED: Final = "hansard.gate.allowed"
EVENT_GATE_REFUSED: Final = "hansard.gate.refused"
EVENT_APPROVAL_REQUESTED: Final = "hansard.approval.requested"
EVENT_APPROVAL_DECIDED: Final = "hansard.approval.decided"
EVENT_APPROVAL_CLAIMED: Final = "hansard.approval.claimed"

# of calls of models
REQUEST: Final = "hansard.request"  # .ref, .redacted
RESPONSE: Final = "hansard.response"  # .ref, .redacted
PAYLOAD_REF: Final = ".ref"
PAYLOAD_REDACTED: Final = ".redacted"
DUPLICATE: Final = "hansard.duplicate"
EVENT_ATTEMPT: Final = "hansard.attempt"  # a try that the client made again
