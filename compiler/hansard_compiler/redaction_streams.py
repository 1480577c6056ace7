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
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol

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
# which begins with the last part of the one before; what stands in the second half of that part
# is judged there only, as a secret may end behind the window. A document with more elements is
# read as a list of chunks.
_WINDOW_CHARS: Final = 2 * 2**20
_OVERLAP_CHARS: Final = 2**20
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


class Clean(Protocol):
    """Cleans texts that follow each other; None says that they stay. A trial counts nothing."""

    def __call__(self, texts: Sequence[str], /, *, is_trial: bool = False) -> list[str] | None: ...


class _Overlap(NamedTuple):
    """Of the chunks of a window: the first that the next begins with, and the first left to it."""

    begin: int
    left: int


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


def clean_chunks(chunks: Sequence[Any], clean: Clean, overlap: _Overlap | None = None) -> set[int]:
    """Clean chunks of one stream, in place; return the positions of those that changed."""
    texts: defaultdict[Any, list[tuple[int, _Piece]]] = defaultdict(list)
    for number, chunk in enumerate(chunks):
        for key, piece in _pieces(chunk):
            texts[key].append((number, piece))
    changed = set()
    for bits in texts.values():
        if len(bits) < 2:
            continue
        said = [piece.holder[piece.at] for _, piece in bits]
        if overlap is not None:
            del said[_judged(said, [number for number, _ in bits], clean, overlap) :]
        made = clean(said) if said else None
        for (number, piece), text in zip(bits, made or (), strict=False):
            if piece.holder[piece.at] != text:
                piece.holder[piece.at] = text
                changed.add(number)
    return changed


def _judged(said: Sequence[str], numbers: Sequence[int], clean: Clean, overlap: _Overlap) -> int:
    """Return how many bits of a text that goes on hold what ends among them."""
    made = clean(said, is_trial=True)
    if made is None or made == said:
        return 0
    until = bisect_left(numbers, overlap.left)
    while until and numbers[until - 1] >= overlap.begin:
        if made[until - 1] == said[until - 1]:
            return until
        until -= 1
    return len(said)  # none before the overlap is known to be untouched, so nothing is left


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
        goes_on = at < len(text)
        window, begin, rest = _clean_window(window, clean, goes_on=goes_on)
        if not goes_on or begin is None or rest > _WINDOW_CHARS:
            break
        done.append(window[:begin])
        window, at = window[begin:] + text[at : at + _WINDOW_CHARS], at + _WINDOW_CHARS
    made = "".join((*done, window, text[at:]))
    return text if made == text else made


def _clean_window(text: str, clean: Clean, *, goes_on: bool) -> tuple[str, int | None, int]:
    """Clean the objects a text begins with.

    Returns the text, where the object in it is that the next window begins with (None without
    one), and how many characters follow the last object.
    """
    found: list[tuple[int, int, Any]] = []
    at = 0
    try:
        while start := _OBJECT.match(text, at):
            value, at = _DECODER.raw_decode(text, start.end() - 1)
            found.append((start.end() - 1, at, value))
    except (ValueError, RecursionError):
        pass  # the rest was cut off
    if not found:
        return text, None, len(text)
    overlap = _overlap_of([start_at for start_at, _, _ in found], at) if goes_on else None
    changed = clean_chunks([value for _, _, value in found], clean, overlap)
    pieces: list[str] = []
    before = length = begin = 0
    for number, (start_at, end_at, value) in enumerate(found):
        piece = json.dumps(value) if number in changed else text[start_at:end_at]
        if overlap is not None and number == overlap.begin:
            begin = length + start_at - before
        length += start_at - before + len(piece)
        pieces += [text[before:start_at], piece]
        before = end_at
    return "".join((*pieces, text[before:])), begin, len(text) - before


def _overlap_of(starts: Sequence[int], end: int) -> _Overlap:
    """Return the overlap of chunks that start at these positions, the last of which ends at one."""
    begin = min(bisect_left(starts, end - _OVERLAP_CHARS), len(starts) - 1)
    return _Overlap(begin, bisect_left(starts, end - _OVERLAP_CHARS // 2))


def _clean_events(text: str, clean: Clean) -> str:
    """Clean server-sent events; those that lost nothing stay as they came."""
    done: list[str] = []
    window, at = "", 0
    while at < len(text):
        line_end = _LINE_END.search(text, at + _WINDOW_CHARS)
        end = line_end.end() if line_end else len(text)
        goes_on = end < len(text)
        window, begin = _clean_lines(window + text[at:end], clean, goes_on=goes_on)
        at = end
        if goes_on:
            done.append(window[:begin])
            window = window[begin:]
    made = "".join((*done, window))
    return text if made == text else made


def _clean_lines(text: str, clean: Clean, *, goes_on: bool) -> tuple[str, int]:
    """Clean the events in a text; return it, and where in it the next window begins."""
    lines = _LINES.findall(text)
    events = _events(lines)
    begin, left = _overlap_lines(lines) if goes_on else (0, 0)
    overlap = _Overlap(begin, left) if goes_on else None
    parts = [part for event in events for part in _parts(lines, event)]
    is_changed = _clean_parts(lines, parts, clean, overlap)
    # Senders differ in whether a line of its own is a line of the text: as bits once more.
    bits = [_Part((at,), [_data_of(lines[at])]) for one in parts if one.is_text for at in one.lines]
    if len(bits) > len(parts) or len(events) == 1:
        is_changed |= _clean_parts(lines, bits, clean, overlap)
    return ("".join(lines) if is_changed else text), sum(map(len, lines[:begin]))


def _overlap_lines(lines: Sequence[str]) -> tuple[int, int]:
    """Return the line that the next window begins with, and the first that is left to it."""
    end, length, left = len(lines), 0, len(lines)
    while end and length < _OVERLAP_CHARS:
        end -= 1
        length += len(lines[end])
        if length <= _OVERLAP_CHARS // 2:
            left = end
    event = next((at for at in range(end, left) if not lines[at].strip("\r\n")), None)
    return (end if event is None else event + 1), left


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


def _clean_parts(
    lines: list[str], parts: Sequence[_Part], clean: Clean, overlap: _Overlap | None
) -> bool:
    """Clean the data of lines, in place; return whether any of them changed.

    Each line of a text stays in a place of its own; those that it has no more are empty.
    """
    if overlap is not None:  # of lines
        starts = [part.lines[0] for part in parts]
        overlap = _Overlap(*(bisect_left(starts, line) for line in overlap))
    changed = clean_chunks([part.chunk for part in parts], clean, overlap)
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
