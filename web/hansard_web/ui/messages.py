"""Recorded messages as pages show them: by role, long texts cut, calls and results as one card."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from hansard_compiler.calls import (
    MediaPart,
    Message,
    OtherPart,
    Part,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from hansard_store.content.messages import ToolEvent
from hansard_web.ui.format import duration, plural, shorten
from hansard_web.ui.json_tree import JsonNode, json_tree, parsed

SHOWN_CHARS = 12_000  # of one text, before "show all"
_PEEK_CHARS = 120
_MOST_RANGES = 8  # of numbers of messages

WHO = {
    "system": "System",
    "developer": "System",
    "user": "User",
    "assistant": "Assistant",
    "tool": "Tool",
}


@dataclass(frozen=True, slots=True)
class TextBlock:
    """A text; `rest_href` leads to all of one that is cut. The kind `text` may be markdown."""

    text: str
    characters: int
    rest_href: str | None = None
    kind: Literal["text", "reasoning", "plain"] = "text"


@dataclass(frozen=True, slots=True)
class JsonBlock:
    tree: JsonNode
    source: TextBlock | None = None  # the text as it was recorded, where it was one
    kind: Literal["json"] = "json"


@dataclass(frozen=True, slots=True)
class MediaBlock:
    """An image, sound or file: named, never loaded from elsewhere."""

    media_type: str
    href: str | None  # of a payload stored here
    where: str  # what the sender gave: a digest, a URI, or how much data stood inline
    kind: Literal["media"] = "media"


Block = TextBlock | JsonBlock | MediaBlock


@dataclass(frozen=True, slots=True)
class ToolCard:
    """A tool call and its result: requested, ran and returned are separate facts."""

    name: str
    call_id: str | None
    states: tuple[tuple[str, str], ...]  # (label, state), as macros/messages.html wants them
    href: str | None  # of the step that ran it
    aside: str
    error: str
    arguments: Block | None
    result: tuple[Block, ...]
    kind: Literal["call"] = "call"


@dataclass(frozen=True, slots=True)
class ShownMessage:
    """One message; `facts` stand behind the speaker's name."""

    who: str
    role: str
    number: str
    blocks: tuple[Block | ToolCard, ...]
    facts: tuple[str, ...] = ()
    is_folded: bool = False
    peek: str = ""  # what a folded message begins with

    @property
    def has_text(self) -> bool:
        """Whether there is a text that can be read as markdown."""
        return any(block.kind == "text" for block in self.blocks)

    @property
    def is_markdown(self) -> bool:
        """Whether its texts are taken for markdown: models write it; what they are sent, people
        and programs wrote as it stands.
        """
        return self.role == "assistant"


@dataclass(frozen=True, slots=True)
class ShownCall:
    """What is known of tool calls beside the messages: who ran them, what came back."""

    events: Mapping[str, ToolEvent] = field(default_factory=dict)
    results: Mapping[str, ToolResultPart] = field(default_factory=dict)  # by call id
    # Steps whose call a gate did not let run: label and state, by step id.
    not_run: Mapping[str, tuple[str, str]] = field(default_factory=dict)


def numbers_text(numbers: Iterable[int]) -> str:
    """Return numbers of messages, in order: `1, 3–8`; of many ranges the first few."""
    ranges: list[list[int]] = []
    for number in numbers:
        if ranges and ranges[-1][1] == number - 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    texts = [f"{one}–{last}" if last > one else f"{one}" for one, last in ranges[:_MOST_RANGES]]
    return ", ".join([*texts, "…"] if len(ranges) > _MOST_RANGES else texts)


def earlier_text(count: int, new: Collection[int]) -> str:
    """Return how many messages of a prompt were there before, and which where others stand between.

    `new` are the numbers of those that are new.
    """
    text = plural(count, "earlier message")
    if not new or min(new) > count:
        return text
    return (
        f"{text} ({numbers_text(one for one in range(1, count + len(new) + 1) if one not in new)})"
    )


def results_by_call(messages: Iterable[Message]) -> dict[str, ToolResultPart]:
    """Return the tool results among messages, by call id.

    Of several the first counts: later prompts may hold it cut short or cleared.
    """
    found: dict[str, ToolResultPart] = {}
    for message in messages:
        for part in message.parts:
            if isinstance(part, ToolResultPart) and part.id:
                found.setdefault(part.id, part)
    return found


def show_message(
    message: Message,
    *,
    number: str = "",
    facts: Sequence[str] = (),
    calls: ShownCall = ShownCall(),
    rest: str | None = None,
) -> ShownMessage:
    """Return a message for display; long texts are cut, with a way to all of them.

    `rest` is that way for a message that has no row of its own.
    """
    rest = rest or f"/texts/{message.hash.hex()}"
    blocks = [_block(part, calls, rest=rest) for part in message.parts]
    named = (message.name,) if message.name else ()
    return ShownMessage(
        who=WHO.get(message.role, message.role.capitalize()),
        role=message.role,
        number=number,
        blocks=tuple(blocks),
        facts=(*named, *facts),
        is_folded=message.role in ("system", "developer"),
        peek=shorten(message.text, _PEEK_CHARS),
    )


def _block(part: Part, calls: ShownCall, *, rest: str) -> Block | ToolCard:
    match part:
        case TextPart():
            return text_block(part.text, rest=rest)
        case ReasoningPart():
            return replace(text_block(part.text, rest=rest), kind="reasoning")
        case ToolCallPart():
            return tool_card(part, calls, rest=rest)
        case ToolResultPart():
            return _result_card(part, calls, rest=rest)
        case MediaPart():
            return _media(part)
        case OtherPart():
            return value_block(part.value, rest=rest)


def text_block(text: str, *, rest: str | None) -> TextBlock:
    """Return a text, cut where it is long."""
    if len(text) <= SHOWN_CHARS:
        return TextBlock(text, len(text))
    return TextBlock(text[:SHOWN_CHARS], len(text), rest)


def value_block(value: Any, *, rest: str | None) -> Block:
    """Return any recorded value: a tree where it is JSON, else a plain text."""
    found = parsed(value)
    if isinstance(found, Mapping | list | tuple):
        source = text_block(value, rest=rest) if isinstance(value, str) else None
        return JsonBlock(json_tree(found), source)
    text = found if isinstance(found, str) else json_tree(found).text
    return replace(text_block(text, rest=rest), kind="plain")


def _media(part: MediaPart) -> MediaBlock:
    if part.payload is not None:
        return MediaBlock(part.media_type or "file", f"/v1/payloads/{part.payload}", part.payload)
    if part.uri is not None:
        return MediaBlock(part.media_type or "file", None, part.uri[:400])
    size = len(part.data or "") * 3 // 4
    return MediaBlock(part.media_type or "file", None, f"{size:,} bytes, inline")


def tool_card(part: ToolCallPart, calls: ShownCall, *, rest: str | None) -> ToolCard:
    """Return a call that a model requested, with what became of it."""
    event = calls.events.get(part.id or "")
    result = calls.results.get(part.id or "")
    ran = event.ran if event else None
    length = _length(ran.start_ns, ran.end_ns) if ran else ""
    if ran is None:
        running = ("ran, no step of it recorded", "") if result else ("not seen to run", "todo")
    elif ran.is_error:
        running = (f"ran, failed{' after ' + length if length else ''}", "fail")
    elif ran.end_ns is None:
        running = ("running", "open")
    else:
        running = (f"ran {length}", "")
    returned = ("returned", "") if result else ("not sent back yet", "todo")
    held = calls.not_run.get(ran.link.step_id) if ran else None
    if held is not None:
        running, returned = held, ("not run", "todo")
    return ToolCard(
        name=part.name,
        call_id=part.id,
        states=(("requested", ""), running, returned),
        href=f"/steps/{ran.link.step_id}" if ran else None,
        aside="",
        error="" if held is not None or not ran or not ran.is_error else "failed",
        arguments=None
        if part.arguments in (None, "", {})
        else value_block(part.arguments, rest=rest),
        result=() if result is None else (value_block(result.content, rest=rest),),
    )


def _result_card(part: ToolResultPart, calls: ShownCall, *, rest: str) -> ToolCard:
    event = calls.events.get(part.id or "")
    ran = event.ran if event else None
    held = calls.not_run.get(ran.link.step_id) if ran else None
    name = part.name or (event.name if event else None) or "result"
    return ToolCard(
        name=name,
        call_id=part.id,
        states=(),
        href=f"/steps/{ran.link.step_id}" if ran else None,
        aside=held[0] if held else _length(ran.start_ns, ran.end_ns) if ran else "",
        error="failed" if ran and ran.is_error and held is None else "",
        arguments=None,
        result=(value_block(part.content, rest=rest),),
    )


def _length(start_ns: int | None, end_ns: int | None) -> str:
    return "" if start_ns is None or end_ns is None else duration(max(end_ns - start_ns, 0))


def headline(message: Message | None) -> str:
    """Return a message in a few words: `User`, `Assistant, asks for search × 2`, `Result of …`."""
    if message is None:
        return "Tool definitions"
    counts: dict[str, int] = {}
    for part in message.parts:
        if isinstance(part, ToolCallPart):
            counts[part.name] = counts.get(part.name, 0) + 1
    who = WHO.get(message.role, message.role.capitalize())
    if counts:
        names = ", ".join(
            f"{name} × {times}" if times > 1 else name for name, times in counts.items()
        )
        return f"{who}, asks for {names[:120]}"
    results = [part for part in message.parts if isinstance(part, ToolResultPart)]
    if results and results[0].name:
        return f"Result of {results[0].name}"
    return "Tool result" if results else "System prompt" if message.role == "system" else who
