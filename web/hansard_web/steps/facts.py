"""The head of a step: its figures with their sources, and its duration among others."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hansard_collector.derivation.stored_span import StepReading
from hansard_compiler.calls import Call
from hansard_store.steps.queries import StepSkeleton
from hansard_web.ui.format import count, duration, milliseconds, percent, usd

_LEAST_FOR_STRIP = 3

_FINISH = {
    "stop": "stop",
    "length": "cut at length",
    "tool_call": "tool call",
    "content_filter": "filtered",
}


@dataclass(frozen=True, slots=True)
class Figure:
    """A number with the attribute it came from; a missing one says why."""

    label: str
    text: str | None
    small: str = ""
    source: str = ""
    why: str = ""


@dataclass(frozen=True, slots=True)
class Among:
    """A duration among the last ones of its name, on a logarithmic scale."""

    duration: str
    places_pct: tuple[float, ...]
    own_pct: float
    say: str
    label: str


def call_figures(call: Call) -> tuple[Figure, ...]:
    """Return the figures of a model call."""
    tokens, sources = call.tokens, call.sources
    failed = "the call failed" if call.error else ""
    unreported = failed or "not reported"
    return (
        _tokens("tokens in", tokens.input, sources, "tokens.input", why=unreported),
        _cached(call, why=unreported),
        _tokens("out", tokens.output, sources, "tokens.output", why=unreported),
        _cost(call, why=unreported),
        _first_token(call),
        _finish(call, why=failed or "no finish reason was sent"),
    )


def _tokens(
    label: str, value: int | None, sources: Mapping[str, str], field: str, *, why: str
) -> Figure:
    text = None if value is None else count(value)
    return Figure(label, text, source=sources.get(field, ""), why=why)


def _cached(call: Call, *, why: str) -> Figure:
    tokens = call.tokens
    if tokens.cache_read is None:
        return Figure("from cache", None, why=why)
    share = percent(tokens.cache_read, tokens.input) if tokens.input else ""
    source = call.sources.get("tokens.cache_read", "")
    return Figure("from cache", count(tokens.cache_read), small=share, source=source)


def _cost(call: Call, *, why: str) -> Figure:
    cost = call.cost
    if cost is None:
        is_unknown = call.tokens.input is None and call.tokens.output is None
        return Figure("cost", None, why=why if is_unknown else "no price is known for this model")
    lines = [f"{what}: {usd(dollars)}" for what, dollars in cost.lines]
    if cost.reported_usd is not None:
        lines.append(f"reported: {usd(cost.reported_usd)}")
    return Figure("cost", usd(cost.usd), source=", ".join([cost.source, *lines]))


def _first_token(call: Call) -> Figure:
    if call.time_to_first_token_ms is None:
        reason = "the answer was not streamed" if call.stream is False else "not reported"
        return Figure("first token", None, why=reason)
    length = milliseconds(call.time_to_first_token_ms)
    return Figure("first token", length, source=call.sources.get("time_to_first_token_ms", ""))


def _finish(call: Call, *, why: str) -> Figure:
    if call.finish_reason is None:
        return Figure("finish", None, why=why)
    raw = call.finish_reason_raw or call.finish_reason
    source = call.sources.get("finish_reason", "")
    return Figure(
        "finish",
        _FINISH.get(call.finish_reason, call.finish_reason.replace("_", " ")),
        source=f"{source}: {raw}" if source else raw,
    )


def step_figures(step: StepSkeleton, reading: StepReading) -> tuple[Figure, ...]:
    """Return the figures of any step: those of its call, else the sums it repeats."""
    call = reading.normal.call
    if call is not None and step.role == "llm":
        return call_figures(call)
    if call is not None:
        return call_figures(call)[:1] + call_figures(call)[3:4]
    sums = reading.normal.tokens_sum
    if sums is None or not sums.any_known():
        return ()
    why = "not reported"
    return (
        _tokens("tokens in, as reported", sums.input, reading.normal.sources,
                "tokens.input", why=why),
        _tokens("out", sums.output, reading.normal.sources, "tokens.output", why=why),
    )  # fmt: skip


def among(step: StepSkeleton, others: Sequence[int]) -> Among | None:
    """Place a duration among the last ones of its name; None where that would say nothing."""
    own = step.duration_ns
    if own is None or len(others) < _LEAST_FOR_STRIP:
        return None
    low, high = min(own, *others), max(own, *others)
    shorter = sum(one < own for one in others)
    median = sorted(others)[len(others) // 2]
    say = f"longer than {shorter} of the last {len(others)}"
    if shorter == 0:
        say = f"the shortest of the last {len(others)}"
    return Among(
        duration=duration(own),
        places_pct=tuple(_place(one, low, high) for one in sorted(others)),
        own_pct=_place(own, low, high),
        say=say,
        label=f"{say[0].upper()}{say[1:]} of this name; their median is {duration(median)}",
    )


def _place(value: int, low: int, high: int) -> float:
    # Durations differ by factors: on a straight scale the longest one would hide all others.
    span = math.log(high + 1) - math.log(low + 1)
    return round(98 * (math.log(value + 1) - math.log(low + 1)) / span, 1) if span else 49.0


@dataclass(frozen=True, slots=True)
class StepProblem:
    """Why a step failed."""

    title: str
    text: str


def problem_of(reading: StepReading) -> StepProblem | None:
    """Return why a step failed, in the words of its sender; None for one that did not."""
    error = reading.normal.error or (reading.normal.call.error if reading.normal.call else None)
    view = reading.view
    if error is None and view.status_code != 2:
        return None
    kind = error.type if error else None
    status = f", HTTP {error.http_status}" if error and error.http_status else ""
    text = (error.message if error else None) or view.status_message
    kind = kind or "Error"
    if text and text.startswith(f"{kind}:"):  # some senders put the type before their message
        text = text[len(kind) + 1 :].strip()
    return StepProblem(kind + status, text or "No error message was recorded.")
