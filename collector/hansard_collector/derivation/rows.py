"""From a dialect's normal form to the rows that are stored of it."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from hansard_collector.derivation.compilations import compilation_of, found_beside
from hansard_collector.dialects import pydantic_ai
from hansard_collector.dialects.engine.item_views import SpanView
from hansard_collector.dialects.engine.normal_form import Normalised
from hansard_compiler.calls import Call, Cost, MediaPart, Message, Tokens, Tool, ToolCallPart
from hansard_store.annotations.rows import SpanAnnotation
from hansard_store.ingest.derived_rows import (
    CallProjection,
    CompilationProjection,
    SpanProjection,
    TextProjection,
    ToolProjection,
    Usage,
)
from hansard_store.policy.checks import CheckRow
from hansard_store.runs.projection import MAX_FACET_CHARS
from hansard_store.search.attributes import resource_tokens_of, tokens_of
from hansard_store.steps.flags import SpanFlag

# Scores and tags that spans or their log records have, in any dialect: shown beside people's own.
#
# A sender can send anything here: what is too long is cut, what is no score is left out,
# and nothing of it fails.

MOST_SCORES: Final = 200  # of one span
MOST_TAGS: Final = 50  # of one run
_NAME_CHARS: Final = 200
_TEXT_CHARS: Final = 4_000
_SOURCES: Final = {"human": "human", "llm": "llm", "code": "code"}


def scores_of(normal: Normalised, span_name: str) -> tuple[SpanAnnotation, ...]:
    """Return the scores of a span; one without a name has the name of its source."""
    return tuple(_scores(normal, normal.name or span_name))[:MOST_SCORES]


def tags_of(normal: Normalised) -> tuple[SpanAnnotation, ...]:
    """Return the tags of a root span as those of its run, each once."""
    tags = dict.fromkeys(
        text[:_NAME_CHARS] for tag in normal.tags if (text := _evaluations_text(tag))
    )
    return tuple(
        SpanAnnotation(name=tag, is_of_run=True, kind="tag") for tag in list(tags)[:MOST_TAGS]
    )


def _scores(normal: Normalised, name: str) -> Iterator[SpanAnnotation]:
    for evaluation in normal.evaluations:
        label, value = (
            _evaluations_text(evaluation.get("label")),
            _number(evaluation.get("score")),
        )
        if label is None and value is None:
            label = _evaluations_text(evaluation.get("score"))
        if label is None and value is None:
            continue
        kind = evaluation.get("annotator_kind")
        yield SpanAnnotation(
            name=(_evaluations_text(evaluation.get("name")) or name or "score")[:_NAME_CHARS],
            value=value,
            label=None if label is None else label[:_NAME_CHARS],
            explanation=(_evaluations_text(evaluation.get("explanation")) or "")[:_TEXT_CHARS]
            or None,
            source=_SOURCES.get(kind.lower()) if isinstance(kind, str) else None,
            author=(_evaluations_text(evaluation.get("identifier")) or "")[:_NAME_CHARS],
            is_of_run=evaluation.get("level") == "trace",
        )


def _evaluations_text(value: Any) -> str | None:
    if isinstance(value, bool):
        return "true" if value else "false"
    # Lone surrogates, which senders can put into JSON, have no place in a column.
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) and value else None


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


# Policy checks that a span lists: one a row, column by column (DESIGN §9).
#
# A sender can send any columns: what is missing or of the wrong type is left empty, and
# nothing of it fails. A check without an effect is none.

SPAN_NAME = "hansard.policy.check"
MOST_CHECKS = 4_000  # as many as our SDK writes into one span
_POLICY = "hansard.policy."
_CHARS = 512
_MOST_NS = (1 << 63) - 1


def checks_of(view: SpanView) -> tuple[CheckRow, ...]:
    """Return the checks of a span of our name; none of any other. Never raises."""
    attributes = view.attributes
    if view.name != SPAN_NAME:
        return ()
    effects = _column(attributes.get(_POLICY + "effects"))
    names = ("actions", "subjects", "rule_ids", "rule_sets", "versions", "reasons", "obligations")
    columns = {name: _column(attributes.get(_POLICY + name)) for name in names}
    policy_hash = _text(attributes.get(_POLICY + "hash")) or ""

    def cell(name: str, at: int) -> str | None:
        column = columns[name]
        return _text(column[at]) if at < len(column) else None

    rows = []
    for at, effect in enumerate(effects[:MOST_CHECKS]):
        effect_text = _text(effect)
        if effect_text is None:
            continue
        rows.append(
            CheckRow(
                time_ns=min(view.start_ns, _MOST_NS),
                action=cell("actions", at) or "",
                effect=effect_text,
                reason_code=cell("reasons", at) or "",
                reason=None,
                rule_id=cell("rule_ids", at),
                rule_set=cell("rule_sets", at),
                rule_version=cell("versions", at),
                rules=(),
                obligations=[one for one in (cell("obligations", at) or "").split(",") if one],
                agent=None,
                subject=cell("subjects", at),
                inputs={},
                policy_hash=policy_hash,
            )
        )
    return tuple(rows)


def _column(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list) else ()


def _text(value: Any) -> str | None:
    return value[:_CHARS] if isinstance(value, str) and value else None


# Raise it when a dialect reads more than before: `hansard rebuild` then makes old rows again.
DERIVED_VERSION = 13

_PAYLOAD_REF = re.compile(r"sha256:[0-9a-f]{64}", re.ASCII)
# <session_context> of Gemini CLI, <environment_context> of Codex, <system-reminder> of Claude Code.
_CONTEXT_TAG = re.compile(r"<([a-z]+[_-]context|system-reminder)>")
_SUMMARY_CHARS = 120
_PREVIEW_CHARS = 300
_GOAL_CHARS = 16_384
_USD_NANO = 1_000_000_000
# Whose input and output people search. A chain's are dumps of state that repeat its messages.
_IO_ROLES = ("agent", "workflow", "task", "retriever", "rerank", "memory", "guardrail", "evaluator")
_RUN_ROLES = ("agent", "workflow")  # whose input and output are those of the run
_STATUS_ERROR = 2
_ENDED_BADLY = SpanFlag.ERROR | SpanFlag.CANCELLED
_CLIENT = 3  # the span kind that the conventions ask of calls to a server
_REMOTE = frozenset({"chat", "generate_content", "text_completion"})
_REF_CHARS = len("sha256:") + 64
# Made once: `json.dumps` makes an encoder a call, which takes as long again as the encoding.
_compact_json = json.JSONEncoder(
    ensure_ascii=False, check_circular=False, separators=(",", ":"), default=repr
).encode
_sorted_json = json.JSONEncoder(
    ensure_ascii=False, check_circular=False, separators=(",", ":"), default=repr, sort_keys=True
).encode
_MOST = 1 << 44  # tokens, or 17,592 dollars: more was never reported of one step but by mistake


def derive(
    view: SpanView, normal: Normalised, *, resource_tokens: str | None = None
) -> SpanProjection:
    """Return the derived rows of one span.

    `resource_tokens` is what `resource_tokens_of` says of its resource, where it is known already.
    """
    call, tool = normal.call, normal.tool
    tokens, cost = (call.tokens, call.cost) if call else (normal.tokens_sum, normal.sum_cost)
    usage = _usage(tokens, cost)
    tool_name = (tool.name if tool else None) or None
    model = (call.response_model or call.request_model) if call else None
    error = _error_text(view, normal)
    compilation = compilation_of(view) if normal.role == "compile" else None
    return SpanProjection(
        role=normal.role,
        dialect=normal.dialect,
        label=normal.name,
        flags=_flags(view, normal),
        agent_name=_short(normal.agent_name),
        tool_name=_short(tool_name),
        model=_short(model),
        usage=usage,
        summary=_summary(normal, error),
        likeness=_likeness(view, normal, tool_name, model),
        call=_call_projection(view, call, usage) if call else None,
        usage_sum=usage if call is None and usage.has_tokens else None,
        # Of MCP's messages only those that name a tool run one; the others list, greet, notify.
        ran=ToolProjection(tool.call_id, tool_name) if tool and tool_name else None,
        requested=tuple(_requested(call)) if call else (),
        texts=tuple(_texts(view, normal, error)),
        facets=tuple(_facets(view, normal, tool_name, model)),
        payloads=tuple(_payloads(view, call)),
        attribute_tokens=_attribute_tokens(view, compilation, resource_tokens),
        conversation_id=normal.conversation_id,
        prompt_id=normal.prompt_id,
        user_id=normal.user_id,
        domain=normal.domain,
        user_goal=_goal(normal),
        first_input=_first_input(normal),
        last_output=_last_output(normal),
        error_type=normal.error.type if normal.error is not None else None,
        compilation=compilation,
        checks=checks_of(view) if normal.role == "policy" else (),
        annotations=annotations_of(view, normal),
        may_have_pending="logfire.span_type" in view.attributes,
        notes=normal.notes if compilation is None else (*normal.notes, *compilation.notes),
    )


def _flags(view: SpanView, normal: Normalised) -> int:
    flags = 0
    if normal.duplicate:
        flags |= SpanFlag.DUPLICATE
    if normal.call is not None and _is_usage_alone(normal.call):
        flags |= SpanFlag.USAGE_ALONE
    if normal.cancelled:
        flags |= SpanFlag.CANCELLED
    elif view.status_code == _STATUS_ERROR or normal.error is not None:
        flags |= SpanFlag.ERROR
    if normal.sum_is_whole and normal.tokens_sum is not None:
        flags |= SpanFlag.SUM_IS_WHOLE
    if normal.follows_calls and not view.status_code and not flags & _ENDED_BADLY:
        flags |= SpanFlag.FOLLOWS_CALLS
    if normal.follows_agents and not flags & _ENDED_BADLY:
        flags |= SpanFlag.FOLLOWS_AGENTS
    if normal.pending_of is not None:
        flags |= SpanFlag.PENDING
    if view.logs:
        flags |= SpanFlag.HAS_LOGS
    if view.events:
        flags |= SpanFlag.HAS_EVENTS
    return flags


def _is_usage_alone(call: Call) -> bool:
    if call.operation or call.response_id or call.finish_reason_raw or call.error is not None:
        return False
    return not (call.input or call.output)


def _usage(tokens: Tokens | None, cost: Cost | None) -> Usage:
    cost_usd_nano = None if cost is None else _meant(round(cost.usd * _USD_NANO))
    if tokens is None:
        return Usage(cost_usd_nano=cost_usd_nano)
    return Usage(
        tokens_input=_meant(tokens.input),
        tokens_output=_meant(tokens.output),
        tokens_cache_read=_meant(tokens.cache_read),
        tokens_cache_write=_meant(tokens.cache_write),
        tokens_reasoning=_meant(tokens.reasoning),
        cost_usd_nano=cost_usd_nano,
    )


def _meant(number: int | None) -> int | None:
    """Return a number that can be meant; a run's sum of them must stay below 2^63."""
    return number if number is not None and 0 <= number <= _MOST else None


def _was_made(view: SpanView, call: Call) -> bool:
    """A call of whose response nothing was stored was made: it has a response id or finish reason.

    So was a stream that was not watched, and a request of a client's span to a server. A model
    and messages alone are what a span has that only prepares a prompt.
    """
    if call.response_id or call.finish_reason_raw:
        return True
    if pydantic_ai.answers_later(view):
        return False
    if call.stream is True or pydantic_ai.is_request(view):
        return True
    return view.kind == _CLIENT and call.operation in _REMOTE


def _call_projection(view: SpanView, call: Call, usage: Usage) -> CallProjection:
    # A span that calls itself a model call, but states neither numbers nor an answer nor a failure,
    # prepares a call (a prompt template, a router): it is shown and not counted.
    effect_text = usage.has_tokens or bool(call.output) or call.error is not None
    return CallProjection(
        usage=usage,
        is_candidate=effect_text or _was_made(view, call),
        operation=call.operation,
        provider=call.provider,
        request_model=call.request_model,
        response_model=call.response_model,
        response_id=call.response_id,
        finish_reason=call.finish_reason,
        input=call.input,
        output=call.output,
        input_is_delta=call.input_is_delta,
        cost_source=call.cost.source if call.cost else None,
        first_token_ms=call.time_to_first_token_ms,
    )


def _requested(call: Call) -> Iterator[ToolProjection]:
    for message in call.output:
        for part in message.parts:
            if isinstance(part, ToolCallPart):
                yield ToolProjection(part.id or None, part.name)


def _texts(view: SpanView, normal: Normalised, error: str | None) -> Iterator[TextProjection]:
    yield TextProjection("span_name", normal.name or view.name)
    if error:
        yield TextProjection("error", error)
    if normal.tool is not None:
        yield from _tool_texts(normal.tool)
    elif normal.role in _IO_ROLES:
        for field, value in (("input", normal.input), ("output", normal.output)):
            if value not in (None, ""):
                yield TextProjection(field, plain_text(value))


def _tool_texts(tool: Tool) -> Iterator[TextProjection]:
    if tool.arguments not in (None, ""):
        yield TextProjection("tool_arguments", plain_text(tool.arguments))
    if tool.result not in (None, ""):
        yield TextProjection("tool_result", plain_text(tool.result))


def _facets(
    view: SpanView, normal: Normalised, tool_name: str | None, model: str | None
) -> Iterator[tuple[str, str]]:
    service = view.resource.get("service.name")
    found = (
        ("service", service),
        ("agent", normal.agent_name),
        ("model", model),
        ("tool", tool_name),
    )
    for kind, value in found:
        if isinstance(value, str) and value:
            yield kind, value[:MAX_FACET_CHARS]


def annotations_of(view: SpanView, normal: Normalised) -> tuple[SpanAnnotation, ...]:
    """Return the scores of a span, and the tags of a root."""
    scores = scores_of(normal, view.name) if normal.evaluations else ()
    is_root = not view.parent_span_id
    return (*scores, *tags_of(normal)) if is_root and normal.tags else scores


def _payloads(view: SpanView, call: Call | None) -> Iterator[bytes]:
    """Yield the digests of payloads that attributes or parts of messages refer to."""
    for value in view.attributes.values():
        if type(value) is str:
            if len(value) == _REF_CHARS:
                yield from _digest(value)
        elif type(value) is list:
            for ref in value:
                if type(ref) is str and len(ref) == _REF_CHARS:
                    yield from _digest(ref)
    for message in (*call.input, *call.output) if call else ():
        for part in message.parts:
            if isinstance(part, MediaPart) and part.payload:
                yield from _digest(part.payload)


def _digest(ref: str) -> Iterator[bytes]:
    if _PAYLOAD_REF.fullmatch(ref):
        yield bytes.fromhex(ref.removeprefix("sha256:"))


def _attribute_tokens(
    view: SpanView, compilation: CompilationProjection | None, resource_tokens: str | None
) -> str:
    if resource_tokens is None:
        resource_tokens = resource_tokens_of(view.resource)
    tokens = f"{tokens_of(view.attributes)} {resource_tokens}"
    return tokens if compilation is None else f"{tokens} {tokens_of(found_beside(compilation))}"


def _error_text(view: SpanView, normal: Normalised) -> str | None:
    if normal.error is not None and (normal.error.message or normal.error.type):
        return normal.error.message or normal.error.type
    return view.status_message if view.status_code == _STATUS_ERROR else None


def _summary(normal: Normalised, error: str | None) -> str | None:
    """Return a few words beside the name: what went wrong, or the output."""
    if error:
        return _clip(error, _SUMMARY_CHARS)
    if normal.call is not None:
        return _clip(_output_text(normal.call.output), _SUMMARY_CHARS)
    if normal.tool is not None:
        return _clip(_arguments(normal.tool.arguments), _SUMMARY_CHARS)
    if normal.query:
        return _clip(normal.query, _SUMMARY_CHARS)
    return None


def _likeness(view: SpanView, normal: Normalised, tool_name: str | None, model: str | None) -> int:
    """Return a number that steps share which do the same: 62 bits of role, name, model, arguments.

    The prompt of a model call is no part of it, as it grows from turn to turn. The lowest bit is 1
    where the step has arguments, and they are a part.
    """
    arguments: Any = normal.tool.arguments if normal.tool is not None else normal.query
    has_arguments = arguments not in (None, "")
    name = tool_name or model or normal.name or view.name
    text = arguments if isinstance(arguments, str) else _sorted_json(arguments)
    digest = hashlib.blake2b(
        f"{normal.role}\0{name}\0{text if has_arguments else ''}".encode("utf-8", "replace"),
        digest_size=8,
    ).digest()
    return int.from_bytes(digest) >> 2 << 1 | has_arguments


def _output_text(output: tuple[Message, ...]) -> str | None:
    text = "\n".join(message.text for message in output if message.text)
    if text:
        return text
    names = [p.name for message in output for p in message.parts if isinstance(p, ToolCallPart)]
    return f"asks for {', '.join(dict.fromkeys(names))}" if names else None


def _arguments(arguments: Any) -> str | None:
    if isinstance(arguments, Mapping):
        return ", ".join(f"{key}: {plain_text(value)}" for key, value in arguments.items())
    return None if arguments in (None, "") else plain_text(arguments)


def _goal(normal: Normalised) -> str | None:
    goal = normal.goal or ""
    return (goal if len(goal) <= _GOAL_CHARS else f"{goal[: _GOAL_CHARS - 1]}…") or None


def _first_input(normal: Normalised) -> str | None:
    if normal.goal is not None:
        return _clip(normal.goal, _PREVIEW_CHARS)
    if normal.call is not None:
        texts = [text for m in reversed(normal.call.input) if m.role == "user" and (text := m.text)]
        prompt = next(filter(None, map(_without_context, texts)), None)
        return _clip(prompt or next(iter(texts), None), _PREVIEW_CHARS)
    if normal.role not in _RUN_ROLES:
        return None
    return _words(normal.input, "user") or _clip(normal.asked, _PREVIEW_CHARS)


def _without_context(text: str) -> str:
    """Return what a person said after the context that coding agents put before it, in tags."""
    text = text.lstrip()
    while tag := _CONTEXT_TAG.match(text):
        end = f"</{tag[1]}>"
        if end not in text:
            break
        text = text.partition(end)[2].lstrip()
    return text


def _last_output(normal: Normalised) -> str | None:
    if normal.call is not None:
        return _clip(_output_text(normal.call.output), _PREVIEW_CHARS)
    if normal.role not in _RUN_ROLES:
        return None
    return _words(normal.output, "assistant") or _clip(normal.answered, _PREVIEW_CHARS)


def _words(value: Any, role: str) -> str | None:
    """Return text that a person said, of messages the last one of a role; state is none."""
    if isinstance(value, list):
        value = _last_text(value, role)
    if isinstance(value, str) and value.strip() and value.lstrip()[0] not in "{[":
        return _clip(value, _PREVIEW_CHARS)
    return None


def _last_text(messages: list[Any], role: str) -> str | None:
    """Return the text of the last message of a role, among messages in their JSON form."""
    for message in reversed(messages):
        if isinstance(message, dict) and message.get("role") == role:
            parts = message.get("parts")
            texts = [part.get("text") for part in parts or () if part.get("type") == "text"]
            if any(texts):
                return "\n".join(text for text in texts if text)
    return None


def _clip(text: str | None, limit: int) -> str | None:
    """Return the beginning of a text on one line."""
    if not text:
        return None
    line = " ".join(text[: limit * 2].split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def _short(text: str | None) -> str | None:
    return text[:MAX_FACET_CHARS] if text else None


def plain_text(value: Any) -> str:
    """Return a value as text: as it is, or as compact JSON."""
    if isinstance(value, str):
        return value
    return _compact_json(value)
