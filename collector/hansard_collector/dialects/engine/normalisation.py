"""Every dialect into one model: a span becomes what DESIGN §7 calls its normal form."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from typing import Any, Final

from hansard_collector.derivation.cost import computed_cost
from hansard_collector.dialects import claude_code, gen_ai
from hansard_collector.dialects.content import call_ids, failure, prompts
from hansard_collector.dialects.content.messages import MessageCache
from hansard_collector.dialects.engine import vocabulary
from hansard_collector.dialects.engine.item_views import NOTHING, SpanView
from hansard_collector.dialects.engine.normal_form import Normalised
from hansard_collector.dialects.engine.plan import Fields, ReadingPlan, adds_only, plan_for
from hansard_collector.dialects.engine.span_reader import Reading, start_reading
from hansard_compiler.calls import (
    Call,
    CallError,
    Cost,
    Message,
    Tokens,
    Tool,
    message_json,
)

# Token counts brought to one meaning: input includes the cached, output includes the reasoning.
#
# Emitters differ (genai-dialects.md, rule 0.6). What each dialect is known to leave out is added by
# its reader; here the counts themselves show what was left out.

_UNKNOWN = Tokens()


def tokens_of(found: Mapping[str, int], sources: MutableMapping[str, str]) -> Tokens:
    """Return the counts that were found; a count that was corrected says so in its source."""
    if not found:
        return _UNKNOWN
    whole_input = found.get("tokens.input")
    whole_output = found.get("tokens.output")
    cached = found.get("tokens.cache_read", 0) + found.get("tokens.cache_write", 0)
    if whole_input is not None and _leaves_out_cached(found, cached):
        whole_input += cached
        sources["tokens.input"] += " + cached"
    if whole_output is not None and _leaves_out_reasoning(found, whole_input):
        whole_output += found["tokens.reasoning"]
        sources["tokens.output"] += " + reasoning"
    sources.pop("tokens.total", None)
    return Tokens(
        input=whole_input,
        output=whole_output,
        cache_read=found.get("tokens.cache_read"),
        cache_write=found.get("tokens.cache_write"),
        cache_write_5m=found.get("tokens.cache_write_5m"),
        cache_write_1h=found.get("tokens.cache_write_1h"),
        reasoning=found.get("tokens.reasoning"),
        audio_input=found.get("tokens.audio_input"),
        audio_output=found.get("tokens.audio_output"),
    )


def _leaves_out_cached(found: Mapping[str, int], cached: int) -> bool:
    """More cached than input, or a total that only comes out with the cached added."""
    if cached > found["tokens.input"]:
        return True
    total, output = found.get("tokens.total"), found.get("tokens.output")
    if not cached or total is None or output is None:
        return False
    return total == found["tokens.input"] + cached + output


def _leaves_out_reasoning(found: Mapping[str, int], whole_input: int | None) -> bool:
    """A total that only comes out with the reasoning added, as Gemini counts."""
    reasoning, total = found.get("tokens.reasoning"), found.get("tokens.total")
    if not reasoning or total is None or whole_input is None:
        return False
    return total == whole_input + found["tokens.output"] + reasoning


__all__ = ["MessageCache", "normalise"]

# What 64 bits hold as billionths of a dollar, and as nanoseconds.
_MOST_USD: Final = 9e9
_MOST_MS: Final = 9e12
_CALL_ROLES = frozenset({"llm", "embedding"})
_TOOL_ROLES = frozenset({"tool", "mcp"})
_SEARCH_ROLES = frozenset({"retriever", "rerank", "memory"})
# Fetches a response made by an earlier call, whose tokens were counted there.
_FETCH = "fetch_response"


def normalise(view: SpanView, messages: MessageCache) -> Normalised:
    """Return the normal form of a span; a generic one where no dialect is recognised.

    Never raises for anything a sender can put into a span. `messages` keeps what was built from
    earlier spans: pass the same one for all.
    """
    plan, families = plan_for(view)
    reading = start_reading(view, messages, families=families, marks=plan.marks)
    sources: dict[str, str] = {}
    role = take(reading, plan.group("role"), sources).get("role", "other")
    reading.role = role
    every = take(reading, plan.group("every"), sources)
    merged = merge(reading, plan.group("merged"))
    error = failure.error_of(reading, take(reading, plan.group("failure")))
    call = _call(reading, plan, merged=merged, error=error) if role in _CALL_ROLES else None
    if call is not None:
        error = call.error
    tokens_sum = None if call is not None else _tokens_sum(reading, plan, sources=sources)
    is_whole = tokens_sum is not None and every.get("sum_is_whole", False)
    content = _content(reading, plan, call, sources=sources)
    search = take(reading, plan.group("retrieval"), sources) if role in _SEARCH_ROLES else {}
    return Normalised(
        role=role,
        dialect=plan.dialect,
        call=call,
        tool=_tool(reading, plan, sources=sources) if role in _TOOL_ROLES else None,
        tokens_sum=tokens_sum,
        sum_cost=_sum_cost(reading, plan, tokens_sum) if tokens_sum and is_whole else None,
        error=error,
        metadata=merged.get("metadata", NOTHING),
        prompt=merged.get("prompt", NOTHING),
        evaluations=join(reading, plan.group("joined")).get("evaluations", ()),
        notes=_notes(reading),
        sources=sources,
        **every,  # the rows of these groups are named as the fields are
        **content,
        **search,
    )


def normalise_scores(view: SpanView, messages: MessageCache) -> Normalised:
    """Return what annotations are made of, for a span whose logs are results of evaluations.

    Raises ValueError where the span without these logs means something else.
    """
    plan, families = plan_for(view)
    before, _ = plan_for(view._replace(logs=()))
    if not adds_only(plan, before, evidence=(prompts.LOGS, gen_ai.RESULT)):
        raise ValueError("the results change the meaning of the span")
    reading = start_reading(view, messages, families=families, marks=plan.marks)
    if prompts.logged(reading, "") or prompts.session_logged(reading, ""):
        raise ValueError("the results name a prompt or a session")
    reading.role = take(reading, plan.group("role")).get("role", "other")
    every = take(reading, plan.group("every"))
    found = join(reading, plan.group("joined")).get("evaluations", ())
    return Normalised(name=every.get("name"), tags=every.get("tags", ()), evaluations=found)


def _call(
    reading: Reading,
    plan: ReadingPlan,
    *,
    merged: Mapping[str, Mapping[str, Any]],
    error: CallError | None,
) -> Call:
    sources: dict[str, str] = {}
    found = take(reading, plan.group("call"), sources)
    messages = _conversation(reading, plan, sources=sources)
    tokens = tokens_of(take(reading, plan.group("tokens"), sources), sources)
    raw_reason = found.get("finish_reason")
    reason = None if raw_reason is None else vocabulary.finish_reason(raw_reason)
    model = found.get("response_model") or found.get("request_model")
    provider = found.get("provider")
    if provider is None and model is not None:
        provider = vocabulary.provider_of_model(model)
        if provider is not None:
            sources["provider"] = "guessed from the model"
    return Call(
        operation=found.get("operation"),
        provider=provider,
        request_model=found.get("request_model"),
        response_model=found.get("response_model"),
        stream=found.get("stream"),
        input=messages.get("input", ()),
        output=messages.get("output", ()),
        tools=found.get("tools", ()),
        parameters=merged.get("parameters", {}),
        finish_reason=reason,
        finish_reason_raw=None if reason is None else raw_reason,
        tokens=tokens,
        cost=_cost(
            reading,
            tokens,
            provider=provider,
            model=model,
            reported=_bounded(found.get("cost.reported"), _MOST_USD),
            reported_by=sources.get("cost.reported", ""),
            reported_lines={
                name: usd
                for name, usd in merged.get("cost.lines", {}).items()
                if _bounded(usd, _MOST_USD) is not None
            },
        ),
        error=failure.error_of_reason(reason, raw_reason, error),
        response_id=found.get("response_id"),
        time_to_first_token_ms=_bounded(found.get("time_to_first_token"), _MOST_MS),
        input_is_delta=claude_code.is_delta(reading),
        sources=sources,
    )


def _conversation(
    reading: Reading, plan: ReadingPlan, *, sources: dict[str, str]
) -> dict[str, tuple[Message, ...]]:
    """The messages of a call; system instructions come first unless the input repeats them."""
    if reading.role == "embedding":  # texts only: its answer is vectors
        return take(reading, plan.group("embedded"), sources)
    messages = take(reading, plan.group("messages"), sources)
    system = messages.pop("system", None)
    if system:
        spoken = messages.get("input", ())
        known = {message.text for message in spoken if message.role == "system"}
        messages["input"] = (*(m for m in system if m.text not in known), *spoken)
    if "input" in messages:
        messages["input"] = call_ids.complete_input(reading, messages["input"])
    if output := call_ids.complete_output(reading, messages.get("output", ())):
        messages["output"] = output
    return messages


def _tokens_sum(reading: Reading, plan: ReadingPlan, *, sources: dict[str, str]) -> Tokens | None:
    fields = plan.group("sums")
    if not fields or reading.attributes.get("gen_ai.operation.name") == _FETCH:
        return None
    found = take(reading, fields, sources)
    return tokens_of(found, sources) if found else None


def _sum_cost(reading: Reading, plan: ReadingPlan, tokens: Tokens) -> Cost | None:
    """What the tokens of several calls cost, where the step names their model."""
    found = take(reading, plan.group("call"))
    model = found.get("response_model") or found.get("request_model")
    if model is None:
        return None
    provider = found.get("provider") or vocabulary.provider_of_model(model)
    return computed_cost(tokens, provider=provider, model=model, at_ns=reading.view.start_ns)


def _cost(
    reading: Reading,
    tokens: Tokens,
    *,
    provider: str | None,
    model: str | None,
    reported: float | None,
    reported_by: str,
    reported_lines: Mapping[str, float],
) -> Cost | None:
    """The computed cost with the reported one beside it, or the reported one alone."""
    priced = None
    if model is not None:
        priced = computed_cost(tokens, provider=provider, model=model, at_ns=reading.view.start_ns)
    if priced is not None:
        return (
            priced if reported is None else Cost(priced.usd, priced.source, priced.lines, reported)
        )
    if reported is None or (reported == 0 and not tokens.any_known()):
        return None  # a failed call of unknown usage: LiteLLM reports nothing as 0
    lines = tuple(reported_lines.items())
    return Cost(reported, f"reported: {reported_by}", lines, reported)


def _bounded(amount: float | None, most: float) -> float | None:
    """Return an amount that the store can hold; one beyond it was never measured."""
    return amount if amount is not None and abs(amount) <= most else None


def _tool(reading: Reading, plan: ReadingPlan, *, sources: dict[str, str]) -> Tool:
    own: dict[str, str] = {}
    found = take(reading, plan.group("tool"), own)
    sources |= {f"tool.{field}": name for field, name in own.items()}
    name = found.get("name")
    if name is None and reading.role == "tool":  # many call a tool's span by the tool's name
        name = reading.view.name or None
    return Tool(
        name=name,
        call_id=found.get("call_id"),
        type=found.get("type"),
        description=found.get("description"),
        arguments=found.get("arguments"),
        result=found.get("result"),
    )


def _content(
    reading: Reading, plan: ReadingPlan, call: Call | None, *, sources: dict[str, str]
) -> dict[str, Any]:
    """What a step took and gave, where neither a call nor a tool has it already."""
    if reading.role in _TOOL_ROLES or (call is not None and (call.input or call.output)):
        return {}
    found = take(reading, plan.group("content"), sources)
    if call is None and not {"input", "output"} <= found.keys():
        own: dict[str, str] = {}
        for field, messages in _conversation(reading, plan, sources=own).items():
            if field not in found and messages:
                found[field] = [message_json(message) for message in messages]
                sources[field] = own.get(field, "system instructions")
    lesser = take(reading, plan.group("lesser_content"))
    return {**lesser, **found}


def _notes(reading: Reading) -> tuple[str, ...]:
    dropped = reading.view.dropped_attributes_count
    if dropped:
        reading.notes.append(
            f"{dropped} attributes were dropped by the sender's SDK; of flattened messages the "
            "last ones are missing"
        )
    if reading.attributes.get("hansard.unended") is True:
        reading.notes.append("the program never ended it; it was closed with its run")
    return tuple(reading.notes)


# Taking fields by their sources.


def take(
    reading: Reading, fields: Fields, sources: MutableMapping[str, str] | None = None
) -> dict[str, Any]:
    """Return each field from its first usable source, and note that source's name."""
    found: dict[str, Any] = {}
    for field, candidates in fields:
        for evidence, read, name in candidates:
            value = read(reading, evidence)
            if value is not None:
                found[field] = value
                if sources is not None:
                    sources[field] = name
                break
    return found


def merge(reading: Reading, fields: Fields) -> dict[str, dict[str, Any]]:
    """Return each field as one mapping from all its sources; what comes first wins a name."""
    found: dict[str, dict[str, Any]] = {}
    for field, candidates in fields:
        for evidence, read, _ in candidates:
            value = read(reading, evidence)
            if value:
                found[field] = {**value, **found.get(field, {})}
    return found


def join(reading: Reading, fields: Fields) -> dict[str, tuple[Any, ...]]:
    """Return each field as the values of all its sources, one after the other."""
    found: dict[str, tuple[Any, ...]] = {}
    for field, candidates in fields:
        for evidence, read, _ in candidates:
            found[field] = (*found.get(field, ()), *(read(reading, evidence) or ()))
    return found
