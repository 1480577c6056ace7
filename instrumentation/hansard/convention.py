"""What each name means that the SDK writes; `docs/semantic-conventions.md` is this table.

`on` says where a name stands: on spans (which), on an event, on a log record, on a link, on the
resource or in baggage. In a name, `*` stands for whatever the program chose.
"""

from __future__ import annotations

from typing import Final, NamedTuple

REVISION: Final = "2026-11"  # of the GenAI conventions' repository, which numbers no releases


class Name(NamedTuple):
    """One attribute, event or link name."""

    name: str
    type: str  # as OpenTelemetry writes it; "content": see docs/semantic-conventions.md
    on: str
    meaning: str


_AGENT, _TOOL, _CALL = "`invoke_agent`", "`execute_tool`", "model calls"
_LOGS = "`hansard.payload`"

# Names of OpenTelemetry's conventions, as they are there.
UPSTREAM: Final = (
    Name("gen_ai.operation.name", "string", "agents, tools, model calls",
         "`invoke_agent`, `execute_tool`, `chat`, `embeddings`"),
    Name("gen_ai.agent.name", "string", _AGENT, "Name of the agent."),
    Name("gen_ai.conversation.id", "string", "all of a run", "The conversation a run belongs to."),
    Name("gen_ai.tool.name", "string", _TOOL, "Name of the tool."),
    Name("gen_ai.tool.call.id", "string", _TOOL, "The model's id of the call."),
    Name("gen_ai.tool.type", "string", _TOOL, "`function`"),
    Name("gen_ai.tool.description", "string", _TOOL, "What the tool is for: its docstring."),
    Name("gen_ai.tool.call.arguments", "content", _TOOL, "Arguments by name, a JSON object."),
    Name("gen_ai.tool.call.result", "content", _TOOL, "Result, as JSON."),
    Name("gen_ai.tool.definitions", "content", _CALL, "Tools that were offered, as JSON."),
    Name("gen_ai.input.messages", "content", _CALL, "Messages sent, in the convention's JSON."),
    Name("gen_ai.output.messages", "content", _CALL, "Messages received, the same."),
    Name("gen_ai.system_instructions", "content", _CALL, "System instructions, the same."),
    Name("gen_ai.provider.name", "string", _CALL, "`openai`, `anthropic`, …"),
    Name("gen_ai.request.model", "string", _CALL, "Model that was asked for."),
    Name("gen_ai.request.stream", "boolean", _CALL, "Whether the answer was streamed."),
    Name("gen_ai.request.temperature", "double", _CALL, "Temperature."),
    Name("gen_ai.request.top_p", "double", _CALL, "Nucleus sampling."),
    Name("gen_ai.request.top_k", "int", _CALL, "Top-k sampling."),
    Name("gen_ai.request.max_tokens", "int", _CALL, "Most tokens of the answer."),
    Name("gen_ai.request.frequency_penalty", "double", _CALL, "Frequency penalty."),
    Name("gen_ai.request.presence_penalty", "double", _CALL, "Presence penalty."),
    Name("gen_ai.request.stop_sequences", "string[]", _CALL, "Stop sequences."),
    Name("gen_ai.request.seed", "int", _CALL, "Seed."),
    Name("gen_ai.request.choice.count", "int", _CALL, "How many answers were asked for."),
    Name("gen_ai.request.reasoning.level", "string", _CALL, "Effort that was asked for."),
    Name("gen_ai.request.previous_response.id", "string", _CALL, "The answer this goes on from."),
    Name("gen_ai.request.encoding_formats", "string[]", _CALL, "Formats of embeddings."),
    Name("gen_ai.output.type", "string", _CALL, "`text`, `json`, `image`, `speech`"),
    Name("gen_ai.embeddings.dimension.count", "int", _CALL, "Dimensions of embeddings."),
    Name("gen_ai.response.id", "string", _CALL, "The provider's id of the answer."),
    Name("gen_ai.response.model", "string", _CALL, "Model that answered."),
    Name("gen_ai.response.finish_reasons", "string[]", _CALL, "Why each answer ended."),
    Name("gen_ai.response.time_to_first_chunk", "double", _CALL,
         "Seconds to the first chunk of a streamed answer."),
    Name("gen_ai.usage.input_tokens", "int", _CALL, "Input tokens, cached ones included."),
    Name("gen_ai.usage.output_tokens", "int", _CALL, "Output tokens, reasoning included."),
    Name("gen_ai.usage.cache_read.input_tokens", "int", _CALL, "Of them read from a cache."),
    Name("gen_ai.usage.cache_write.input_tokens", "int", _CALL, "Of them written to a cache."),
    Name("gen_ai.usage.reasoning.output_tokens", "int", _CALL, "Output tokens of reasoning."),
    Name("gen_ai.usage.audio.input_tokens", "int", _CALL, "Input tokens of audio."),
    Name("gen_ai.usage.audio.output_tokens", "int", _CALL, "Output tokens of audio."),
    Name("openai.api.type", "string", _CALL, "`chat_completions` or `responses`"),
    Name("openai.request.service_tier", "string", _CALL, "Tier that was asked for."),
    Name("openai.response.service_tier", "string", _CALL, "Tier that answered."),
    Name("openai.response.system_fingerprint", "string", _CALL, "OpenAI's fingerprint."),
    Name("anthropic.request.service_tier", "string", _CALL,
         "Tier that was asked for, in Anthropic's own name."),
    Name("anthropic.response.service_tier", "string", _CALL, "Tier that answered."),
    Name("anthropic.thinking.type", "string", _CALL,
         "How thinking was asked for: `adaptive`, `enabled`, …"),
    Name("anthropic.thinking.budget_tokens", "int", _CALL, "Most tokens of thinking."),
    Name("anthropic.usage.cache_creation.ephemeral_5m_input_tokens", "int", _CALL,
         "Of the tokens written to a cache, those for 5 min."),
    Name("anthropic.usage.cache_creation.ephemeral_1h_input_tokens", "int", _CALL,
         "Those for 1 h."),
    Name("server.address", "string", _CALL, "Host of the provider."),
    Name("server.port", "int", _CALL, "Port of the provider."),
    Name("http.request.method", "string", _CALL, "Method of a recorded request."),
    Name("http.request.header.*", "string[]", _CALL, "Headers that a replay needs."),
    Name("http.request.resend_count", "int", _CALL, "How often the client tried again."),
    Name("http.response.status_code", "int", _CALL, "HTTP status of the answer."),
    Name("http.response.header.*", "string[]", _CALL, "Request ids and rate limits."),
    Name("http.response.body.size", "int", _CALL, "Bytes of the answer."),
    Name("url.path", "string", _CALL, "Path of a recorded request."),
    Name("url.query", "string", _CALL, "Its query."),
    Name("user.id", "string", "a run", "Whom the run is for."),
    Name("code.function.name", "string", "decorated functions", "`module.qualified.name`"),
    Name("error.type", "string", "what failed", "The exception's class, with its module."),
    Name("exception", "event", "what failed", "An exception that was raised, or recorded."),
    Name("exception.type", "string", "event `exception`", "The exception's class."),
    Name("exception.message", "string", "event `exception`", "Its message; not in metadata_only."),
    Name("exception.stacktrace", "string", "event `exception`",
         "Its traceback, the middle cut out over 32 KiB; not in metadata_only."),
    Name("service.name", "string", "the resource", "Name of the program."),
    Name("service.instance.id", "string", "the resource", "One process; a fork gets its own."),
)  # fmt: skip

# Ours, versioned by `hansard.schema_version`.
OWN: Final = (
    Name("hansard.schema_version", "string", "our spans", "Version of this table: `1`."),
    Name("hansard.input", "content", "agents and steps", "Arguments by name, a JSON object."),
    Name("hansard.output", "content", "agents and steps",
         "Result, as JSON; of a generator what it yielded."),
    Name("hansard.output.items", "int", "generators", "How many values were yielded."),
    Name("hansard.kind", "string", "steps", "Role of the step: `chain`, `retriever`, …"),
    Name("hansard.cancelled", "boolean", "what was given up",
         "A task was cancelled, a generator left, a key pressed: ended early, and no error."),
    Name("hansard.duplicate", "boolean", _CALL, "Another span tells the same call."),
    Name("hansard.left_open", "boolean", "runs and steps",
         "The program never ended it; the end of its run or of the program did."),
    Name("hansard.run.id", "string", "baggage", "The run, for those that are called."),
    Name("hansard.run.domain", "string", "a run", "What the run is about, for filters."),
    Name("hansard.run.goal", "content", "a run", "What is to be reached, in the user's words."),
    Name("hansard.run.tags", "string[]", "a run", "Words to filter by."),
    Name("hansard.run.metadata.*", "string, number, boolean", "a run", "What the program added."),
    Name("hansard.step.metadata.*", "string, number, boolean", "a step", "What it added there."),
    Name("hansard.step.index", "int", "a step", "How many steps of the run were begun before."),
    Name("hansard.tool.told", "string", _TOOL,
         "`call` or `result`, where only one of the two was recorded."),
    Name("hansard.tool.result_again", "event", _TOOL, "A second result for an answered call."),
    Name("hansard.link.type", "string", "a link",
         "`caller`: the span in which a run of its own was started."),
    Name("hansard.request.ref", "string", _CALL, "Payload with the exact bytes sent."),
    Name("hansard.request.redacted", "boolean", _CALL, "Secrets were cut out of them."),
    Name("hansard.response.ref", "string", _CALL, "Payload with the exact bytes received."),
    Name("hansard.response.redacted", "boolean", _CALL, "Secrets were cut out of them."),
    Name("hansard.attempt", "event", _CALL, "A try that the client made again."),
    Name("hansard.counted.input_tokens", "int", _CALL, "Answer to a question for a count."),
    Name("hansard.payload", "event", "a log record", "Bytes of a payload of up to 1 MiB."),
    Name("hansard.payload.digest", "string", _LOGS, "`sha256:` and 64 hex digits of the body."),
    Name("hansard.payload.media_type", "string", _LOGS, "What the bytes are."),
    Name("hansard.pulse", "event", "a log record", "The process lives; every 10 s."),
    Name("hansard.pulse.trace_ids", "string[]", "`hansard.pulse`",
         "Traces of which this process has open spans."),
    Name("hansard.pulse.interval_ms", "int", "`hansard.pulse`", "When to expect the next."),
    Name("hansard.pulse.last", "boolean", "`hansard.pulse`",
         "The process ends: what is open will not be ended."),
    Name("hansard.loss", "event", "a log record", "What never reached the collector."),
    Name("hansard.loss.signal", "string", "`hansard.loss`", "`spans` or `logs`"),
    Name("hansard.loss.reason", "string", "`hansard.loss`", "Why: `queue full`, `spool full`, …"),
    Name("hansard.loss.items", "int", "`hansard.loss`", "How many since the process started."),
)  # fmt: skip
