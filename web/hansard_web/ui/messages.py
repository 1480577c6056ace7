"""Recorded messages as pages show them: by role, long texts cut, calls and results as one card."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
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
from hansard_web.media.recorded import Recorded, media_in, media_in_part
from hansard_web.media.types import MediaKind, View
from hansard_web.ui.format import duration, file_size, plural, shorten
from hansard_web.ui.json_tree import JsonNode, json_tree, parsed

SHOWN_CHARS = 12_000  # of one text, before "show all"
_PEEK_CHARS = 120
AGENT_MARKS = 6  # colours in the style sheet
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
    media: tuple[MediaBlock, ...] = ()


@dataclass(frozen=True, slots=True)
class JsonBlock:
    tree: JsonNode
    source: TextBlock | None = None  # the text as it was recorded, where it was one
    kind: Literal["json"] = "json"
    media: tuple[MediaBlock, ...] = ()


@dataclass(frozen=True, slots=True)
class MediaBlock:
    """An image, sound or file: shown from this server, never loaded from elsewhere."""

    media_type: str
    href: str | None  # of its bytes, where they are stored here
    view: View = "file"
    size: str = ""
    digest: str = ""  # of the bytes, in hex
    reference: str = ""  # of bytes that are elsewhere: a URL, a provider's file id
    note: str = ""
    pixels: tuple[int, int] | None = None
    kind: Literal["media"] = "media"


@dataclass(frozen=True, slots=True)
class StoredMedia:
    """What is known of a payload that a message names."""

    kind: MediaKind
    size: int
    digest: str
    declared: str


@dataclass(frozen=True, slots=True)
class SentResult:
    """A tool result, and the address of the media in it."""

    part: ToolResultPart
    media: str


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
    agent: str = ""  # which one speaks, where a run has several

    @property
    def agent_mark(self) -> int:
        """The colour of its agent: the same for a name on every page."""
        return zlib.crc32(self.agent.encode("utf-8", "replace")) % AGENT_MARKS

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
    results: Mapping[str, SentResult] = field(default_factory=dict)  # by call id
    # Steps whose call a gate did not let run: label and state, by step id.
    not_run: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    # Looks up a payload by reference; returns why there is none as a text.
    payloads: Callable[[str], StoredMedia | str] | None = None


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


def results_by_call(messages: Iterable[Message]) -> dict[str, SentResult]:
    """Return the tool results among messages, by call id.

    Of several the first counts: later prompts may hold it cut short or cleared.
    """
    found: dict[str, SentResult] = {}
    for message in messages:
        for at, part in enumerate(message.parts):
            if isinstance(part, ToolResultPart) and part.id and part.id not in found:
                found[part.id] = SentResult(part, f"{media_address(message)}/{at}")
    return found


def media_address(message: Message) -> str:
    """Return where the media of a stored message is, part by part."""
    return f"/v1/messages/{message.hash.hex()}/media"


def show_message(
    message: Message,
    *,
    number: str = "",
    facts: Sequence[str] = (),
    calls: ShownCall = ShownCall(),
    rest: str | None = None,
    media: str | None = None,
) -> ShownMessage:
    """Return a message for display; long texts are cut, with a way to all of them.

    `rest` is that way for a message that has no row of its own, `media` the address of what is
    inside of it; "" where it has none.
    """
    media = media_address(message) if media is None else media
    rest = rest or f"/texts/{message.hash.hex()}"
    blocks = [
        _block(part, calls, rest=rest, media=f"{media}/{at}" if media else "")
        for at, part in enumerate(message.parts)
    ]
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


def _block(part: Part, calls: ShownCall, *, rest: str, media: str) -> Block | ToolCard:
    match part:
        case TextPart():
            return text_block(part.text, rest=rest, media=media)
        case ReasoningPart():
            return replace(text_block(part.text, rest=rest, media=media), kind="reasoning")
        case ToolCallPart():
            return tool_card(part, calls, rest=rest, media=media)
        case ToolResultPart():
            return _result_card(part, calls, rest=rest, media=media)
        case MediaPart():
            return _media(part, calls, media)
        case OtherPart():
            return value_block(part.value, rest=rest, media=media)


def text_block(text: str, *, rest: str | None, media: str = "") -> TextBlock:
    """Return a text, cut where it is long; media in it stands behind it."""
    shown, found = media_in(text)
    blocks = _inside(found, media)
    if len(shown) <= SHOWN_CHARS:
        return TextBlock(shown, len(text), media=blocks)
    return TextBlock(shown[:SHOWN_CHARS], len(text), rest, media=blocks)


def value_block(value: Any, *, rest: str | None, media: str = "") -> Block:
    """Return any recorded value: a tree where it is JSON, else a plain text."""
    read = parsed(value)
    if isinstance(read, Mapping | list | tuple):
        shown, found = media_in(read)
        source = None
        if isinstance(value, str):
            text = without_media(value, found)
            source = replace(text_block(text, rest=rest), media=())
        return JsonBlock(json_tree(shown), source, media=_inside(found, media))
    text = read if isinstance(read, str) else json_tree(read).text
    return replace(text_block(text, rest=rest, media=media), kind="plain")


def without_media(text: str, found: Iterable[Recorded]) -> str:
    """Return a text with a placeholder for each piece of media that was found in it."""
    for one in found:
        if isinstance(one.encoded, str) and one.encoded:
            text = text.replace(one.encoded, one.placeholder)
    return text


def _inside(found: Sequence[Recorded], media: str) -> tuple[MediaBlock, ...]:
    return tuple(
        recorded_block(one, f"{media}/{at}" if media else None) for at, one in enumerate(found)
    )


def recorded_block(one: Recorded, href: str | None) -> MediaBlock:
    """Return media whose bytes stand in the record itself."""
    kind = one.kind
    note = "" if one.data else "its base64 cannot be read"
    return MediaBlock(
        media_type=(one.declared if kind.view == "file" and one.declared else kind.media_type)[
            :100
        ],
        href=href if one.data else None,
        view=kind.view if href else "file",
        size=file_size(len(one.data)),
        digest=one.digest,
        note=note or kind.why,
        pixels=kind.pixels,
    )


def _media(part: MediaPart, calls: ShownCall, media: str) -> MediaBlock:
    declared = (part.media_type or "file")[:100]
    if part.payload is not None:
        stored = calls.payloads(part.payload) if calls.payloads else None
        if isinstance(stored, str):
            return MediaBlock(declared, None, reference=part.payload[:400], note=stored)
        href = f"/v1/payloads/{part.payload}"
        if stored is None:
            return MediaBlock(declared, href, digest=part.payload.removeprefix("sha256:")[:64])
        kind = stored.kind
        return MediaBlock(
            media_type=stored.declared if kind.view == "file" else kind.media_type,
            href=f"{href}/media",
            view=kind.view,
            size=file_size(stored.size),
            digest=stored.digest,
            note=kind.why,
            pixels=kind.pixels,
        )
    _, found = media_in_part(part)
    if found:
        return recorded_block(found[0], f"{media}/0" if media else None)
    if part.uri is not None:
        return MediaBlock(declared, None, reference=part.uri[:2_000], note="not fetched")
    return MediaBlock(declared, None, note="not stored")


def tool_card(
    part: ToolCallPart, calls: ShownCall, *, rest: str | None, media: str = ""
) -> ToolCard:
    """Return a call that a model requested, with what became of it."""
    event = calls.events.get(part.id or "")
    result = calls.results.get(part.id or "")
    ran = event.ran if event else None
    length = _length(ran.start_ns, ran.end_ns) if ran else ""
    if ran is None:
        running = ("ran, no step of it recorded", "") if result else ("No tool span found", "todo")
    elif ran.is_error:
        running = (f"ran, failed{' after ' + length if length else ''}", "fail")
    elif ran.end_ns is None:
        running = ("running", "open")
    else:
        running = (f"ran {length}", "")
    returned = ("returned", "") if result else ("Result not yet returned to the model", "todo")
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
        else value_block(part.arguments, rest=rest, media=media),
        result=()
        if result is None
        else (value_block(result.part.content, rest=rest, media=result.media),),
    )


def _result_card(part: ToolResultPart, calls: ShownCall, *, rest: str, media: str) -> ToolCard:
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
        result=(value_block(part.content, rest=rest, media=media),),
    )


def _length(start_ns: int | None, end_ns: int | None) -> str:
    return "" if start_ns is None or end_ns is None else duration(max(end_ns - start_ns, 0))


def headline(message: Message | None) -> str:
    """Return a message in a few words: `User`, `Assistant → search × 2 (tool call)`."""
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
        return f"{who} → {names[:120]} (tool call)"
    results = [part for part in message.parts if isinstance(part, ToolResultPart)]
    if results and results[0].name:
        return f"Result of {results[0].name}"
    return "Tool result" if results else "System prompt" if message.role == "system" else who
