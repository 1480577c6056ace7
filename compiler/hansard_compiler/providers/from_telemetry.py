"""A call without a compile, rebuilt from what telemetry has of it, with changes to its messages.

A tool call and its result stay together: removing one takes the other along, and says so. What was
rebuilt is never called exact: the sender's own request had fields that no telemetry has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from hansard_compiler.calls import (
    Call,
    Json,
    Message,
    Part,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from hansard_compiler.providers.base import RenderInput, Sampling
from hansard_compiler.providers.formats.fields import known, neutral_tool
from hansard_compiler.providers.transport.failures import NotRenderable
from hansard_compiler.replay import mutations as change
from hansard_compiler.replay.errors import NotReplayable, ReplayReason

_SAMPLING = {
    "max_tokens": "max_output_tokens",
    "max_completion_tokens": "max_output_tokens",
    "max_output_tokens": "max_output_tokens",
    "temperature": "temperature",
    "top_p": "top_p",
    "seed": "seed",
    "reasoning_level": "effort",
    "reasoning_effort": "effort",
}

_USUAL = Sampling()


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """A call's messages and tools, and what was taken along with what was removed."""

    model: str
    messages: tuple[Message, ...]
    tools: tuple[Json, ...]
    sampling: Sampling = _USUAL
    provider: str | None = None  # another than the call's own
    notes: tuple[str, ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)  # fields of the request, as recorded

    def render_input(self, *, stream: bool = False) -> RenderInput:
        """Return what an adapter renders: system messages at the head are the instructions."""
        head = 0
        while head < len(self.messages) and self.messages[head].role in ("system", "developer"):
            head += 1
        return RenderInput(
            model=self.model,
            messages=self.messages[head:],
            system=tuple(message.text for message in self.messages[:head] if message.text),
            tools=self.tools,
            sampling=self.sampling,
            stream=stream,
            extra=self.extra,
        )


def rebuilt_from(call: Call) -> Rebuilt:
    """Return what telemetry has of a call's request."""
    return Rebuilt(
        model=call.request_model or call.response_model or "",
        messages=call.input,
        tools=tuple(map(known, call.tools)),
        sampling=sampling_from(call),
    )


def sampling_from(call: Call) -> Sampling:
    """Return how the model was to answer, as far as telemetry has it."""
    fields: dict[str, Any] = {}
    for name, field_name in _SAMPLING.items():
        value = call.parameters.get(name)
        if isinstance(value, int | float | str) and not isinstance(value, bool):
            fields.setdefault(field_name, value)
    stop = call.parameters.get("stop_sequences")
    if isinstance(stop, list):
        fields["stop"] = tuple(map(str, stop))
    return Sampling(**fields)


def mutate_messages(turn: Rebuilt, mutations: Sequence[change.Mutation]) -> Rebuilt:
    """Return the call with changes applied in order. Raises NotReplayable."""
    for number, one in enumerate(mutations, 1):
        if isinstance(one, change.ON_COMPILES):
            detail = f"change {number} ({one.op}) is about items"
            raise NotReplayable(ReplayReason.NO_COMPILATION, detail)
        turn = _applied(turn, one)
    if not any(message.parts for message in turn.messages if message.role != "system"):
        raise NotReplayable(ReplayReason.CONTEXT_EMPTY)
    return turn


def _applied(turn: Rebuilt, one: change.Mutation) -> Rebuilt:
    match one:
        case change.SetModel():
            return replace(turn, model=one.model)
        case change.SetProvider():
            return replace(turn, provider=one.provider)
        case change.SetSampling():
            return replace(turn, sampling=resampled(turn.sampling, one))
        case change.EditMessage():
            return _edit(turn, one)
        case change.RemoveMessage():
            return _remove(turn, one.position)
        case change.AddMessage():
            return _add(turn, one)
        case change.RemoveTool():
            return _remove_tool(turn, one.name)
    raise NotReplayable(ReplayReason.NO_COMPILATION, one.op)


def resampled(sampling: Sampling, one: change.SetSampling) -> Sampling:
    """Return the sampling with what a change names; a null takes the setting away."""
    made = {name: getattr(one, name) for name in one.model_fields_set - {"op"}}
    absent = [
        name
        for name, value in made.items()
        if value in (None, []) and getattr(sampling, name) in (None, ())
    ]
    if absent:
        raise NotReplayable(
            ReplayReason.FIELD_ABSENT, f"the call sets no {', '.join(sorted(absent))}"
        )
    if "stop" in made:
        made["stop"] = tuple(made["stop"] or ())
    return replace(sampling, **made)


def _at(turn: Rebuilt, position: int) -> Message:
    if position >= len(turn.messages):
        many = len(turn.messages)
        raise NotReplayable(
            ReplayReason.ITEM_UNKNOWN, f"message {position}: the call has {many}, from 0"
        )
    return turn.messages[position]


def _edit(turn: Rebuilt, one: change.EditMessage) -> Rebuilt:
    message = _at(turn, one.position)
    if message.role == "tool":
        raise NotReplayable(
            ReplayReason.MUTATION_INVALID,
            f"message {one.position} is the result of a tool: results are recorded, not written",
        )
    if one.part is not None:
        return replace(
            turn, messages=_with(turn.messages, one.position, _part_edited(message, one))
        )
    others = tuple(part for part in message.parts if not isinstance(part, TextPart))
    texts: tuple[Part, ...] = (TextPart(one.text),) if one.text else ()
    changed = replace(message, parts=(*texts, *others))
    return replace(turn, messages=_with(turn.messages, one.position, changed))


def _part_edited(message: Message, one: change.EditMessage) -> Message:
    texts = [at for at, part in enumerate(message.parts) if isinstance(part, TextPart)]
    if one.part is None or one.part >= len(texts):
        detail = f"message {one.position} has {len(texts)} texts; part {one.part} is none of them"
        raise NotReplayable(ReplayReason.ITEM_UNKNOWN, detail)
    at = texts[one.part]
    return replace(
        message, parts=(*message.parts[:at], TextPart(one.text), *message.parts[at + 1 :])
    )


def _with(messages: tuple[Message, ...], position: int, changed: Message) -> tuple[Message, ...]:
    return (*messages[:position], changed, *messages[position + 1 :])


def _add(turn: Rebuilt, one: change.AddMessage) -> Rebuilt:
    position = len(turn.messages) if one.position is None else one.position
    if position > len(turn.messages):
        _at(turn, position)
    if _parts_a_pair(turn.messages, position):
        raise NotReplayable(
            ReplayReason.BROKEN_PAIRS, f"a message at {position} would part a call from its result"
        )
    message = Message(one.role, (TextPart(one.text),))
    messages = (*turn.messages[:position], message, *turn.messages[position:])
    return replace(turn, messages=messages)


def _parts_a_pair(messages: Sequence[Message], position: int) -> bool:
    before = {part.id for message in messages[:position] for part in _calls(message)}
    after = {part.id for message in messages[position:] for part in _results(message)}
    return bool(before & after)


def _remove(turn: Rebuilt, position: int) -> Rebuilt:
    message = _at(turn, position)
    calls = {part.id for part in _calls(message)}
    results = {part.id for part in _results(message)}
    left = [one for number, one in enumerate(turn.messages) if number != position]
    unpaired = [_without_pairs(one, calls=results, results=calls) for one in left]
    notes = list(turn.notes)
    if calls:
        notes.append(f"message {position} was removed with the results of its tool calls")
    if results:
        notes.append(f"message {position} was removed with the tool calls it answers")
    return replace(
        turn, messages=tuple(one for one in unpaired if one is not None), notes=tuple(notes)
    )


def _without_pairs(
    message: Message, *, calls: set[str | None], results: set[str | None]
) -> Message | None:
    """Return a message without what is the other half of something removed; None: nothing left."""
    parts = tuple(
        part
        for part in message.parts
        if not (isinstance(part, ToolCallPart) and part.id in calls)
        and not (isinstance(part, ToolResultPart) and part.id in results)
    )
    if len(parts) == len(message.parts):
        return message
    return replace(message, parts=parts) if parts else None


def _remove_tool(turn: Rebuilt, name: str) -> Rebuilt:
    tools = tuple(tool for tool in turn.tools if _name_of(tool) != name)
    if len(tools) == len(turn.tools):
        raise NotReplayable(ReplayReason.ITEM_UNKNOWN, f"no tool {name!r} was on offer")
    used = [
        number
        for number, message in enumerate(turn.messages)
        if any(part.name == name for part in _calls(message))
    ]
    if used:
        where = ", ".join(map(str, used))
        raise NotReplayable(
            ReplayReason.BROKEN_PAIRS, f"{name!r} was called in message {where}: remove those first"
        )
    return replace(turn, tools=tools)


def _calls(message: Message) -> list[ToolCallPart]:
    return [part for part in message.parts if isinstance(part, ToolCallPart)]


def _results(message: Message) -> list[ToolResultPart]:
    return [part for part in message.parts if isinstance(part, ToolResultPart)]


def _name_of(tool: Json) -> str | None:
    try:
        found = neutral_tool(tool)
    except NotRenderable:
        return None
    return None if found is None else found.name
