"""The allow-list of `metadata_only`: attribute names whose text is metadata, never content.

From the dialect tables (reference/genai-dialects.md §1–§20), the conventions they follow and the
resource conventions. `#` stands for an index, `*` for one segment, `**` for the rest. A name that
is not here is content: descriptions, prompts, arguments, results, free-form metadata, URLs with
paths, command lines, file names, e-mail addresses, status texts.

Numbers and booleans need no entry; they are stored under every name.
"""

from __future__ import annotations

import re
from enum import Enum
from functools import lru_cache

from hansard_compiler.renamed import current_attribute


class Kind(Enum):
    CONTENT = "content"  # withheld
    NAME = "name"  # short text without line breaks
    NUMBERS = "numbers"  # a JSON object of numbers
    DIGEST = "digest"  # a hash of content: stored as its HMAC


_RESOURCE = """
service.* service.instance.id telemetry.** deployment.environment deployment.environment.name
host.name host.id host.arch host.type os.type os.name os.version process.executable.name
process.runtime.** container.id container.name container.image.name container.image.tag
container.image.tags cloud.** k8s.*.name k8s.*.uid faas.name faas.version faas.trigger
browser.language browser.platform device.model.identifier openinference.project.name
langfuse.environment langfuse.release langfuse.version app.version terminal.type
"""

_GENERAL = """
session.id user.id enduser.id error.type exception.type code.function code.function.name
code.namespace thread.name peer.service http.method http.request.method http.route http.flavor
url.scheme server.address net.peer.name network.protocol.* network.transport network.type
rpc.system rpc.service rpc.method rpc.system.name db.system db.system.name db.operation
db.operation.name db.collection.name db.namespace db.search.similarity_metric messaging.system
messaging.operation messaging.operation.* messaging.destination messaging.destination.name
messaging.message.type jsonrpc.protocol.version jsonrpc.request.id rpc.response.status_code
mcp.method.name mcp.session.id mcp.protocol.version mcp.request.id aws.bedrock.guardrail.id
aws.bedrock.knowledge_base.id aws.agentcore.session.id input.mime_type output.mime_type link.type
event.name event_name event.timestamp event.kind event.start_time event.end_time
"""

_GEN_AI = """
gen_ai.operation.name gen_ai.provider.name gen_ai.system gen_ai.output.type gen_ai.token.type
gen_ai.request.model gen_ai.response.model gen_ai.response.id gen_ai.response.finish_reasons
gen_ai.response.finish_reason gen_ai.response.stop_reason gen_ai.response.service_tier
gen_ai.response.system_fingerprint gen_ai.finishReason gen_ai.request.reasoning.level
gen_ai.request.reasoning_effort gen_ai.request.reasoning_summary gen_ai.request.encoding_formats
gen_ai.request.previous_response.id gen_ai.request.service_tier gen_ai.request.image.size
gen_ai.request.image.style gen_ai.request.image.response_format gen_ai.conversation.id
gen_ai.agent.name gen_ai.agent.id gen_ai.agent.version gen_ai.agent.call.id
gen_ai.agent.handoff_parent gen_ai.handoff.from_agent gen_ai.handoff.to_agent gen_ai.workflow.name
gen_ai.data_source.id gen_ai.prompt.name gen_ai.prompt.version gen_ai.tool.name gen_ai.tool.type
gen_ai.tool.call.id gen_ai.tool.call_id gen_ai.tool.status gen_ai.tool.#.name gen_ai.agent.tools
gen_ai.task.id gen_ai.task.name gen_ai.task.parent.id gen_ai.task.status gen_ai.task.kind
gen_ai.guardrail.name gen_ai.guardrail.status gen_ai.guardrail.error.type gen_ai.memory.store.id
gen_ai.memory.record.id gen_ai.evaluation.name gen_ai.evaluation.score.label
gen_ai.event.start_time gen_ai.event.end_time gen_ai.user gen_ai.skill.name
gen_ai.openai.request.service_tier gen_ai.openai.response.service_tier
gen_ai.openai.response.system_fingerprint gen_ai.openai.system_fingerprint
openai.request.service_tier openai.response.service_tier openai.response.system_fingerprint
openai.api.type gen_ai.prompt.#.role gen_ai.prompt.#.tool_call_id gen_ai.prompt.#.tool_calls.#.id
gen_ai.prompt.#.tool_calls.#.name gen_ai.completion.#.role gen_ai.completion.#.finish_reason
gen_ai.completion.#.tool_calls.#.id gen_ai.completion.#.tool_calls.#.name role id index
finish_reason tool_call_id
"""

_FRAMEWORKS = """
openinference.span.kind llm.model_name llm.request.model_name llm.response.model_name
llm.input_model_name llm.output_model_name llm.provider llm.system llm.finish_reason
llm.request.type llm.response.finish_reason llm.response.stop_reason llm.user embedding.model_name
reranker.model_name decision.request.model_name decision.response.model_name agent.name
graph.node.id graph.node.name graph.node.parent_id tool.name tool.id tool_call.id prompt.id
prompt.vendor tag.tags llm.prompt_template.version llm.input_messages.#.message.role
llm.output_messages.#.message.role llm.input_messages.#.message.name
llm.output_messages.#.message.name llm.input_messages.#.message.tool_call_id
llm.input_messages.#.message.tool_calls.#.tool_call.id
llm.input_messages.#.message.tool_calls.#.tool_call.function.name
llm.output_messages.#.message.tool_calls.#.tool_call.id
llm.output_messages.#.message.tool_calls.#.tool_call.function.name
llm.input_messages.#.message.contents.#.message_content.type
llm.output_messages.#.message.contents.#.message_content.type
llm.input_messages.#.message.contents.#.tool_call.id
llm.input_messages.#.message.contents.#.tool_call.function.name
llm.output_messages.#.message.contents.#.tool_call.id
llm.output_messages.#.message.contents.#.tool_call.function.name llm.tools.#.tool.name
llm.request.functions.#.name retrieval.documents.#.document.id evaluations.#.evaluation.name
evaluations.#.evaluation.label evaluations.#.evaluation.identifier
evaluations.#.evaluation.annotator_kind traceloop.span.kind traceloop.workflow.name
traceloop.entity.name traceloop.entity.path traceloop.entity.version traceloop.correlation.id
traceloop.prompt.key traceloop.prompt.version traceloop.prompt.version_name
traceloop.association.properties.session_id traceloop.association.properties.thread_id
traceloop.association.properties.chat_id traceloop.association.properties.conversation_id
traceloop.association.properties.user_id langgraph.command.source_node langgraph.command.goto_node
langgraph.command.goto_nodes ai.operationId operation.name resource.name ai.model.id
ai.model.provider ai.response.model ai.response.id ai.response.finishReason ai.response.timestamp
ai.toolCall.name ai.toolCall.id ai.telemetry.functionId ai.telemetry.metadata.sessionId
ai.telemetry.metadata.threadId ai.telemetry.metadata.userId ai.telemetry.metadata.tags agent_name
model_name logfire.span_type logfire.pending_parent_id logfire.tags pydantic_ai.workspace.id
langfuse.observation.type langfuse.observation.level langfuse.observation.model.name
langfuse.observation.prompt.name langfuse.observation.completion_start_time langfuse.trace.name
langfuse.trace.tags langfuse.session.id langfuse.user.id langfuse.prompt.name
langfuse.experiment.id langfuse.experiment.name langfuse.experiment.item.id mlflow.spanType
mlflow.llm.model mlflow.llm.provider mlflow.message.format mlflow.traceRequestId
mlflow.trace.session mlflow.trace.user mlflow.spanFunctionName mlflow.traceName
mlflow.experimentId langsmith.span.kind langsmith.trace.name langsmith.trace.session_id
langsmith.trace.session_name langsmith.metadata.session_id langsmith.metadata.thread_id
langsmith.metadata.conversation_id langsmith.span.tags gcp.vertex.agent.session_id
gcp.vertex.agent.invocation_id gcp.vertex.agent.event_id event_loop.cycle_id
event_loop.parent_cycle_id workflow.id workflow.name executor.id executor.type edge_group.id
edge_group.type edge_group.delivery_status message.source_id message.target_id message.type
message.payload_type message.destination_executor_id haystack.component.name
haystack.component.type haystack.component.fully_qualified_type haystack.tool.name
haystack.tool.call.id haystack.pipeline.execution_mode spring.ai.kind spring.ai.advisor.name
spring.ai.tool.definition.name spring.ai.tool.type spring.ai.tool.call.id
spring.ai.chat.client.conversation.id spring.ai.chat.client.tool.names
spring.ai.model.request.tool.names spring.ai.chat.client.advisors litellm.call_id
litellm.call_type litellm.provider.model litellm.team.id litellm.team.alias litellm.end_user.id
litellm.provider.error.code litellm.provider.error.llm_provider litellm.request.purpose
lmnr.span.type lmnr.association.properties.session_id lmnr.association.properties.user_id
lk.agent_name genkit:type genkit:name genkit:metadata:subtype
agentops.span.kind mastra.span.type gen_ai.span.kind fi.span.kind gen_ai.request.type
gen_ai.input.messages.#.message.role gen_ai.output.messages.#.message.role
mastra.metadata.sessionId mastra.metadata.threadId mastra.metadata.userId
model_dict.model_name response.raw.model response.raw.id response.message.role
"""

# Coding agents write bare names; these are of Claude Code, Codex and Gemini CLI (§13–§15).
_CODING_AGENTS = """
span.type model tool_name tool_name_safe tool_use_id call_id request_id client_request_id
query_source speed effort stop_reason llm_request.context parent.source agent_id parent_agent_id
organization.id user.account_uuid user.account_id anthropic.mcp.server.name mcp_tool prompt.id
message.uuid decision mcp_server_scope mcp_server subagent_type type status_code success
function_name prompt_id tool_type mcp_server_name installation.id anthropic.request.id
anthropic.organization.id anthropic.workspace.id anthropic.session.id anthropic.session.thread.id
anthropic.environment.id anthropic.message.stop_reason anthropic.request.service_tier
anthropic.response.service_tier anthropic.thinking.type conversation.id parent.conversation.id
turn.id root.turn.id agent.type provider_name reasoning_effort reasoning_summary approval_policy
sandbox_policy auth_mode originator codex.request.reasoning_effort tool_origin
"""

_HANSARD = """
hansard.schema_version hansard.kind hansard.run.domain hansard.run.tags hansard.link.type
hansard.transcript.id
hansard.tool.recorded_part hansard.compilation.id hansard.item.ids hansard.item.kinds
hansard.item.decisions hansard.item.passes hansard.item.reasons hansard.item.sections
hansard.item.rule_ids hansard.memory.writer hansard.memory.type hansard.memory.outcome
hansard.approval.id hansard.approval.status hansard.replay.of hansard.replay.id
hansard.replay.mode hansard.policy.rule_ids hansard.policy.versions hansard.policy.effect
hansard.payload.media_type hansard.item.tokens_before hansard.item.tokens_after
hansard.item.scores hansard.item.missed_tokens hansard.item.missed_scores hansard.item.related
hansard.compilation.provider hansard.compilation.model hansard.compilation.counter
hansard.compilation.ports hansard.keepalive.trace_ids
hansard.dropped.signal hansard.dropped.reason hansard.compilation.counter hansard.compilation.ports
hansard.policy.hash hansard.policy.actions hansard.policy.subjects hansard.policy.effects
hansard.policy.rule_sets hansard.policy.reasons hansard.policy.obligations
hansard.tokens.estimator hansard.call.incomplete_reason hansard.error.code
hansard.error.provider_code hansard.events.hash
"""

_NUMBERS = """
langfuse.observation.usage_details langfuse.observation.cost_details mlflow.chat.tokenUsage
mlflow.trace.tokenUsage mlflow.llm.cost mlflow.trace.cost gen_ai.usage.input_token_details
gen_ai.usage.output_token_details gen_ai.usage.** gen_ai.cost.** gen_ai.aggregated_usage.**
llm.token_count.** llm.cost.** llm.usage.** ai.usage.** litellm.cost.** usage.** input_tokens
output_tokens cache_read_tokens cache_creation_tokens cache_creation_5m_tokens
cache_creation_1h_tokens input_token_count output_token_count cached_token_count
cache_write_token_count reasoning_token_count tool_token_count cached_content_token_count
thoughts_token_count total_token_count cost_usd cost_usd_micros duration_ms ttft_ms
llm.invocation_parameters langfuse.observation.model.parameters gen_ai.request.parameters
response.raw.usage.** prompt_length response_length
interaction.* attempt
"""

_DIGESTS = """
hansard.compilation.hash hansard.stable_prefix_hash hansard.volatile_suffix_hash
hansard.transcript.prefix_hash
hansard.compilation.stable_prefix_hash hansard.compilation.volatile_suffix_hash
hansard.request.ref hansard.response.ref hansard.result_ref
hansard.compilation.request_ref hansard.compilation.result_ref hansard.recipe.ref
hansard.compilation.policy_ref hansard.policy.checks_ref hansard.item.payload_refs
hansard.item.final_refs hansard.step.input_refs
hansard.approval.arguments_hash hansard.payload.digest hansard.payload.ref system_prompt_hash
traceloop.prompt.version_hash gen_ai.input.messages_ref gen_ai.output.messages_ref
gen_ai.system_instructions_ref gen_ai.tool.definitions_ref gen_ai.tool.call.arguments_ref
gen_ai.tool.call.result_ref gen_ai.retrieval.documents_ref hansard.input_ref hansard.output_ref
hansard.run.goal_ref gen_ai.tool.description_ref
litellm.api_key.hash
metadata.user_api_key_hash
"""

_SEGMENTS = {"#": r"[0-9]+", "*": r"[^.]+", "**": r".+"}


def _pattern(*tables: str) -> re.Pattern[str]:
    """Compile names with their wildcards; without nested repetition, hence linear."""
    spelled = (
        r"\.".join(_SEGMENTS.get(segment, re.escape(segment)) for segment in name.split("."))
        for name in " ".join(tables).split()
    )
    return re.compile("|".join(spelled))


_KINDS = (
    (Kind.DIGEST, _pattern(_DIGESTS)),
    (Kind.NUMBERS, _pattern(_NUMBERS)),
    (
        Kind.NAME,
        _pattern(_RESOURCE, _GENERAL, _GEN_AI, _FRAMEWORKS, _CODING_AGENTS, _HANSARD),
    ),
)
_LONGEST_KEY = 256


@lru_cache(maxsize=16_384)
def _known_kind(key: str) -> Kind:
    name = current_attribute(key)
    return next((kind for kind, names in _KINDS if names.fullmatch(name)), Kind.CONTENT)


def kind_of(key: str) -> Kind:
    """Return what the text under an attribute name is taken for."""
    return _known_kind(key) if len(key) <= _LONGEST_KEY else Kind.CONTENT
