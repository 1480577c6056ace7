"""Streams of a provider inside of texts: what their chunks say bit by bit, as texts of their own.

A provider sends `sk-an`, then `t-api03-…`: no chunk shows the secret, and the answer that is put
together of them would. Found are server-sent events (HTML standard, section 9.2), lists of chunks
as JSON and objects that follow each other, and all of these inside of strings of a JSON document.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import re2

from hansard_compiler.redaction_checks import latin1

# What serialised telemetry or a text holds where a stream may be in it, in any depth of escapes.
_MARKS: Final = re2.compile(
    rb'data: ?\{|[\r\n]data:|\\[rn]data:|hunk|text_completion|[dD]elta["\\]|"done":|done\\":'
    rb'|candidates["\\]'
    # Names of attributes that end in a number, and all that say what they hold: the tag of the
    # value follows, or that of an event's attributes.
    rb"|[._\-\[/:][0-9]{1,9}\]?\x12|(?i:chunk|delta)[^\x00-\x1f]*[\x12\x1a]",
    options=latin1(),
)
_MOST_DEPTH = 4  # of streams in strings of JSON in strings
# A chunk takes thirty times its text when it is read. So a long text is read in windows, each of
# which begins with the last part of the one before, for a secret across their border; and a
# document with more elements is read as a list of chunks only.
_WINDOW_CHARS: Final = 2 * 2**20
_OVERLAP_CHARS: Final = 512 * 1024
_MOST_CONTAINERS: Final = 1 << 18
_MOST_ELEMENTS: Final = 1 << 21
# Leaves of a chunk that are names, not parts of a text.
_NAMES: Final = frozenset({
    "id", "type", "object", "role", "model", "name", "item_id", "call_id", "response_id",
    "signature", "obfuscation", "system_fingerprint", "finish_reason", "stop_reason",
    "service_tier", "encrypted_content", "modelVersion", "responseId", "finishReason",
})  # fmt: skip
_PLACES: Final = ("index", "output_index", "content_index", "summary_index", "item_id")
_OBJECT = re.compile(r"[\s,\[]*\{")
_DECODER = json.JSONDecoder()
_LINES = re.compile(r"[^\r\n]*(?:\r\n|\n|\r|$)")
_LINE_END = re.compile(r"\r\n|\n|\r")
_EMPTY_LINE = re.compile(r"\r\n\r\n|\n\n|\r\r")

Clean = Callable[[Sequence[str]], list[str] | None]  # texts that follow each other; None: as it was


class _Piece(NamedTuple):
    """Where a bit of a text stands."""

    holder: Any  # a dict or list
    at: Any


def may_hold_stream(raw: bytes) -> bool:
    """Return whether a text, or serialised telemetry, may hold a stream; False is certain."""
    return _MARKS.search(raw) is not None


def clean_streams(text: str, clean: Clean, *, depth: int = 0) -> str:
    """Return the text with the streams in it cleaned; the same text where nothing was.

    `clean` gets the bits of each text that a stream says, in order, and returns them cleaned.
    """
    if depth > _MOST_DEPTH or not may_hold_stream(text.encode("utf-8", "surrogatepass")):
        return text
    if text.lstrip()[:1] in ("{", "[", '"'):
        document = _Document(depth, clean)
        return document.cleaned(text)
    return _clean_events(text, clean)


def clean_chunks(chunks: Sequence[Any], clean: Clean) -> set[int]:
    """Clean chunks of one stream, in place; return the positions of those that changed."""
    texts: defaultdict[Any, list[tuple[int, _Piece]]] = defaultdict(list)
    for number, chunk in enumerate(chunks):
        for key, piece in _pieces(chunk):
            texts[key].append((number, piece))
    changed = set()
    for bits in texts.values():
        made = clean([piece.holder[piece.at] for _, piece in bits]) if len(bits) > 1 else None
        for (number, piece), text in zip(bits, made or (), strict=False):
            if piece.holder[piece.at] != text:
                piece.holder[piece.at] = text
                changed.add(number)
    return changed


def _pieces(chunk: Any) -> Iterator[tuple[Any, _Piece]]:
    """Yield the strings of a chunk that are bits of texts, with what tells their text."""
    kind = chunk.get("type") if isinstance(chunk, dict) else None
    waiting: list[tuple[Any, tuple[Any, ...]]] = [(chunk, (kind,))]
    while waiting:
        holder, path = waiting.pop()
        if isinstance(holder, dict):
            path += tuple(holder.get(name) for name in _PLACES if name in holder)
            children: list[tuple[Any, Any]] = list(holder.items())
        else:
            children = list(enumerate(holder if isinstance(holder, list) else ()))
        for at, value in children:
            # An element that says its index has it in its path.
            says = isinstance(value, dict) and "index" in value
            step = (*path, "" if says else at)
            if isinstance(value, dict | list):
                waiting.append((value, step))
            elif isinstance(value, str) and value and at not in _NAMES:
                yield _hashable(step), _Piece(holder, at)


def _hashable(path: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(one if isinstance(one, str | int | None) else repr(one) for one in path)


@dataclass(slots=True)
class _Document:
    """A JSON document with streams in it: lists of chunks, and strings."""

    depth: int
    clean: Clean
    is_changed: bool = False

    def cleaned(self, text: str) -> str:
        if _is_crowded(text):
            return self._cleaned_as_chunks(text)
        try:
            whole = [json.loads(text)]
            self._walk(whole)
            return json.dumps(whole[0]) if self.is_changed else text
        except (ValueError, RecursionError):  # no JSON: of a stream that begins with a brace
            return text if self.is_changed else self._cleaned_as_chunks(text)

    def _cleaned_as_chunks(self, text: str) -> str:
        made = _clean_objects(text, self.clean)
        return _clean_events(text, self.clean) if made is text else made

    def _walk(self, value: Any) -> None:
        waiting = [value]
        while waiting:
            holder = waiting.pop()
            if isinstance(holder, list):
                self._list(holder)
            children = holder.items() if isinstance(holder, dict) else enumerate(holder)
            for at, one in children:  # of which values are replaced, and none is added
                if isinstance(one, dict | list):
                    waiting.append(one)
                elif isinstance(one, str):
                    made = clean_streams(one, self.clean, depth=self.depth + 1)
                    if made is not one:
                        holder[at], self.is_changed = made, True

    def _list(self, listed: list[Any]) -> None:
        opened = [_opened(one) for one in listed]
        if sum(isinstance(one, dict) for one in opened) < 2:
            return
        for number in clean_chunks(opened, self.clean):
            is_text = isinstance(listed[number], str)
            listed[number] = json.dumps(opened[number]) if is_text else opened[number]
            self.is_changed = True


def _is_crowded(text: str) -> bool:
    """Return whether JSON may hold more than is read at once; signs in its texts count too."""
    if len(text) <= 2 * _MOST_CONTAINERS:
        return False
    containers = text.count("{") + text.count("[")
    return containers > _MOST_CONTAINERS or text.count(",") > _MOST_ELEMENTS


def _opened(value: Any) -> Any:
    if isinstance(value, str) and value.lstrip().startswith("{"):
        if _is_crowded(value):
            return None
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return None
    return value


def _clean_objects(text: str, clean: Clean) -> str:
    """Clean JSON objects that follow each other: a line each, or a list that was cut off.

    One that is longer than a window ends them.
    """
    done: list[str] = []
    window, at = text[:_WINDOW_CHARS], _WINDOW_CHARS
    while True:
        window, starts, end = _clean_window(window, clean)
        if at >= len(text) or len(window) - end > _WINDOW_CHARS or not starts:
            break
        again = bisect_left(starts, end - _OVERLAP_CHARS)
        kept = starts[min(again, len(starts) - 1)]
        done.append(window[:kept])
        window, at = window[kept:] + text[at : at + _WINDOW_CHARS], at + _WINDOW_CHARS
    made = "".join((*done, window, text[at:]))
    return text if made == text else made


def _clean_window(text: str, clean: Clean) -> tuple[str, list[int], int]:
    """Clean the objects a text begins with; return it, where each starts, and where they end."""
    found: list[tuple[int, int, Any]] = []
    at = 0
    try:
        while start := _OBJECT.match(text, at):
            value, at = _DECODER.raw_decode(text, start.end() - 1)
            found.append((start.end() - 1, at, value))
    except (ValueError, RecursionError):
        pass  # the rest was cut off
    changed = clean_chunks([value for _, _, value in found], clean)
    pieces, starts, length, before = [], [], 0, 0
    for number, (start_at, end_at, value) in enumerate(found):
        piece = json.dumps(value) if number in changed else text[start_at:end_at]
        starts.append(length + start_at - before)
        length = starts[-1] + len(piece)
        pieces += [text[before:start_at], piece]
        before = end_at
    return "".join((*pieces, text[before:])), starts, length


def _clean_events(text: str, clean: Clean) -> str:
    """Clean server-sent events; those that lost nothing stay as they came."""
    done: list[str] = []
    window, at = "", 0
    while at < len(text):
        line_end = _LINE_END.search(text, at + _WINDOW_CHARS)
        end = line_end.end() if line_end else len(text)
        window, at = _clean_lines(window + text[at:end], clean), end
        if at < len(text):
            kept = _event_start(window, len(window) - _OVERLAP_CHARS)
            done.append(window[:kept])
            window = window[kept:]
    made = "".join((*done, window))
    return text if made == text else made


def _event_start(text: str, at: int) -> int:
    """Return where the first event from a position on begins, or else the first line."""
    found = _EMPTY_LINE.search(text, max(at, 0)) or _LINE_END.search(text, max(at, 0))
    return found.end() if found else 0


def _clean_lines(text: str, clean: Clean) -> str:
    lines = _LINES.findall(text)
    events = _events(lines)
    parts = [part for event in events for part in _parts(lines, event)]
    is_changed = _clean_parts(lines, parts, clean)
    # Senders differ in whether a line of its own is a line of the text: as bits once more.
    bits = [_Part((at,), [_data_of(lines[at])]) for one in parts if one.is_text for at in one.lines]
    if len(bits) > len(parts) or len(events) == 1:
        is_changed |= _clean_parts(lines, bits, clean)
    return "".join(lines) if is_changed else text


class _Part(NamedTuple):
    """The data of one or several `data:` lines: a JSON object, or a list of one text."""

    lines: tuple[int, ...]
    chunk: Any

    @property
    def is_text(self) -> bool:
        return isinstance(self.chunk, list)


def _events(lines: Sequence[str]) -> list[list[int]]:
    """Return the `data:` lines of each event; an empty line ends one."""
    events: list[list[int]] = [[]]
    for at, line in enumerate(lines):
        if line.startswith("data:"):
            events[-1].append(at)
        elif events[-1] and not line.strip("\r\n"):
            events.append([])
    return [event for event in events if event]


def _parts(lines: Sequence[str], event: Sequence[int]) -> list[_Part]:
    """Return the data of an event: its lines together, or each, where one is a JSON object."""
    texts = [_data_of(lines[at]) for at in event]
    whole = _opened("\n".join(texts))
    if isinstance(whole, dict):
        return [_Part(tuple(event), whole)]
    opened = [_opened(text) for text in texts] if len(texts) > 1 else []
    if not any(isinstance(one, dict) for one in opened):
        return [_Part(tuple(event), ["\n".join(texts)])]
    return [
        _Part((at,), one if isinstance(one, dict) else [text])
        for at, one, text in zip(event, opened, texts, strict=True)
    ]


def _data_of(line: str) -> str:
    return line[5:].removeprefix(" ").rstrip("\r\n")


def _clean_parts(lines: list[str], parts: Sequence[_Part], clean: Clean) -> bool:
    """Clean the data of lines, in place; return whether any of them changed.

    Each line of a text stays in a place of its own; those that it has no more are empty.
    """
    changed = clean_chunks([part.chunk for part in parts], clean)
    for part in (parts[number] for number in changed):
        text = part.chunk[0] if part.is_text else json.dumps(part.chunk)
        texts = text.split("\n", len(part.lines) - 1)
        ends = [_end_of(lines[at]) for at in part.lines]
        for at in part.lines:
            lines[at] = ""
        for at, line in zip(part.lines, texts, strict=False):
            lines[at] = f"data: {line}{ends[0]}"
        lines[part.lines[len(texts) - 1]] = f"data: {texts[-1]}{ends[-1]}"
    return bool(changed)


def _end_of(line: str) -> str:
    return line[len(line.rstrip("\r\n")) :]
