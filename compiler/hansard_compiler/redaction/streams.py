"""Streams of a provider inside of texts: what their chunks form bit by bit, as texts of their own.

A provider sends `sk-an`, then `t-api03-…`: no chunk shows the secret, and the answer that is put
together of them would. A stream is a row of JSON values: the data of server-sent events (HTML
standard, section 9.2), lines that are JSON, with or without a prefix and a colon, objects that
follow each other, elements of a list; all of these inside of strings of a JSON document, too.

What stands in the same place of each chunk is one text, whatever the names of the fields: strings,
and lists of bytes. Of chunks that repeat what was said before, only what each adds is read.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count, islice, pairwise
from operator import itemgetter
from typing import Any, Final, NamedTuple, Protocol

import re2

from hansard_compiler.redaction.checks import latin1

# A line break, and a quote, in any depth of escapes.
_BREAK = rb"(?:[\r\n]|\\+[rn])"
_QUOTE = rb'\\*"'
# Three digits of a byte that is a Latin letter, a digit or the like.
_BYTE = rb"(?:3[2-9]|[4-9][0-9]|1[01][0-9]|12[0-6])"
_LENGTH = rb"[\x80-\xff]{0,3}[\x00-\x7f]"  # of a text in protobuf
# An object of a list, in one line and short: up to three objects in each other.
_SHORT_OBJECT = rb"(?:\{[^{}\r\n]{0,60}){1,3}\}(?:[^{}\r\n]{0,9}\}){0,2}"
# What serialised telemetry or a text holds where a stream may be in it, in any depth of escapes.
_MARKS: Final = re2.compile(
    rb'data: ?[\{\["]|[\r\n]data:|hunk|text_completion|[dD]elta["\\]|\\[rn]data:|"done":|done\\":'
    rb'|candidates["\\]|(?:event_type|snapshot)\\*":|partial\\*": ?true|logprobs\\*": ?\{'
    # JSON values that follow each other, and lines with a prefix before one.
    rb"|\}(?:\s|\\+[nrt])*\{\s*" + _QUOTE + rb"|\]" + _BREAK + rb"+\[[\[{" + rb'\\"]'
    rb"|" + _QUOTE + _BREAK + rb"+" + _QUOTE + rb"[^,:\s]"
    rb"|" + _BREAK + rb"[A-Za-z0-9_.\-]{1,32}:(?:" + _QUOTE + rb"|[{\[])"
    # The same in elements of an array: the end of one, then tags and lengths.
    rb"|\}\x0a" + _LENGTH + rb"\x0a" + _LENGTH + rb'\{"|\x0a[\x00-\x7f][A-Za-z0-9]{1,2}:["{\[]'
    # Lists that begin with short objects, with pieces of words, or with bytes.
    rb"|\[\s{0,9}(?:(?:"
    + _SHORT_OBJECT
    + rb", ?){4}|(?:"
    + _QUOTE
    + rb'[^"\\\s]{1,8}'
    + _QUOTE
    + rb", ?){8}|(?:"
    + _BYTE
    + rb"\s{0,9},\s{0,9}){11})"
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
_MOST_LINES: Final = 1 << 17
_MOST_CONTAINERS: Final = 1 << 18
_MOST_STEPS: Final = 40  # from a chunk to a bit; more deeply, lists within it are read as chunks
_MOST_ELEMENTS: Final = 1 << 21
# Leaves of a chunk that are names, not parts of a text.
_NAMES: Final = frozenset({
    "id", "type", "object", "role", "model", "name", "item_id", "call_id", "response_id",
    "signature", "obfuscation", "system_fingerprint", "finish_reason", "stop_reason",
    "service_tier", "encrypted_content", "modelVersion", "responseId", "finishReason",
})  # fmt: skip
_PLACES: Final = ("index", "output_index", "content_index", "summary_index", "item_id")
_LEAST_BYTES: Final = 12  # of a list that stands alone; no secret is shorter
_MOST_RUNS: Final = 4  # texts at one place that grow in turn
_LEAST_REPEATED: Final = 4  # characters: less is repeated by chance
_MOST_PIECES: Final = 1 << 16  # of a chunk, and texts of a list that are read as one
_OF_PIECES: Final = re.compile("token|chunk|delta|piece", re.IGNORECASE)  # names of lists of texts
_OBJECT = re.compile(r"[\s,\[\]]*\{")
_PREFIX = re.compile(r'(?:(?!(?:event|id|retry):)[A-Za-z0-9_.\-]{1,32}: ?)?(?=[{\["])')
_SHORT_REST: Final = 2  # characters after the last object: a bracket and a line break
_JSON_STARTS: Final = ("{", "[", '"')
_JSON_ENDS: Final = ("}", "]", '"')
_DECODER = json.JSONDecoder()
_LINES = re.compile(r"[^\r\n]*(?:\r\n|\n|\r|$)")
_LINE_END = re.compile(r"\r\n|\n|\r")


_Path = tuple[Any, ...]


class Clean(Protocol):
    """Cleans texts that follow each other; None means that they stay. A trial counts nothing."""

    def __call__(self, texts: Sequence[str], /, *, is_trial: bool = False) -> list[str] | None: ...


class _Overlap(NamedTuple):
    """Of the chunks of a window: the first that the next begins with, and the first left to it."""

    begin: int
    left: int


class _Piece(NamedTuple):
    """Where a bit of a text is, in the chunk of this number and in the order of all bits."""

    order: int
    number: int
    holder: Any  # a dict or list
    at: Any

    @property
    def text(self) -> str:
        value = self.holder[self.at]
        if isinstance(value, str):
            return value
        return bytes(value).decode("utf-8", "surrogateescape")

    def replace(self, text: str) -> None:
        is_text = isinstance(self.holder[self.at], str)
        self.holder[self.at] = text if is_text else list(text.encode("utf-8", "surrogateescape"))


class _Line(NamedTuple):
    """A line of a stream: what it begins with, and its value, which a chunk holds at a place."""

    start: str
    chunk: Any  # a dict or list
    at: Any = None  # None: the chunk itself
    is_text: bool = False

    def written(self) -> str:
        """Return what comes behind the start."""
        value = self.chunk if self.at is None else self.chunk[self.at]
        return value if self.is_text else json.dumps(value)


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


def line_of(text: str) -> _Line:
    """Return a line, or an event, that holds JSON, alone or after a prefix; else one of text."""
    found = _PREFIX.match(text)
    value = _value_of(text[found.end() :]) if found else None
    if found is None or value is None:
        return _Line("", [text], 0, is_text=True)
    start = found[0]
    if start.rstrip() not in ("", "data:"):
        return _Line(start, {start: value}, start)
    return _opened_line(start, value)


def _opened_line(start: str, value: Any) -> _Line:
    return _Line(start, {"": value}, "") if isinstance(value, str) else _Line(start, value)


def clean_chunks(chunks: Sequence[Any], clean: Clean, overlap: _Overlap | None = None) -> set[int]:
    """Clean chunks of one stream, in place; return the positions of those that changed."""
    changed = set()
    for bits in _texts(chunks):
        if len(bits) == 1 and isinstance(bits[0].holder[bits[0].at], str):
            continue
        texts = [bit.text for bit in bits]
        made = _cleaned(texts, [bit.number for bit in bits], clean, overlap)
        for bit, before, after in zip(bits, texts, made, strict=True):
            if before != after:
                bit.replace(after)
                changed.add(bit.number)
    return changed


def _texts(chunks: Sequence[Any]) -> Iterator[list[_Piece]]:
    """Yield the bits of each text that chunks form, in order.

    Elements of a list are texts of their own (several answers), and bits of one (its tokens).
    """
    texts: defaultdict[_Path, list[_Piece]] = defaultdict(list)
    orders = count()
    for number, chunk in enumerate(chunks):
        for path, holder, at in islice(_pieces(chunk), _MOST_PIECES):
            texts[path].append(_Piece(next(orders), number, holder, at))
    yield from texts.values()
    wider: defaultdict[_Path, list[_Path]] = defaultdict(list)
    for path in texts:
        for one in _wider(path):
            wider[one].append(path)
    for paths in wider.values():
        if len(paths) > 1:
            yield sorted((bit for path in paths for bit in texts[path]), key=itemgetter(0))


def _wider(path: _Path) -> list[_Path]:
    """Return a path without positions in lists, and with the last of several only.

    Of a token's alternatives, the first ones are a text.
    """
    positions = [at for at, step in enumerate(path) if isinstance(step, tuple)]
    if not positions:
        return []
    without = tuple(() if isinstance(step, tuple) else step for step in path)
    if len(positions) == 1:
        return [without]
    last = positions[-1]
    return [(*without[:last], path[last], *without[last + 1 :]), without]


def _cleaned(
    bare: Sequence[str], numbers: Sequence[int], clean: Clean, overlap: _Overlap | None
) -> list[str]:
    """Return the bits of a text without the secrets that they form together."""
    made = list(bare)
    runs = _runs(bare) if max(map(len, bare)) > _LEAST_REPEATED else []
    for run in runs:
        _clean_run(made, run, clean)
    bits = list(range(len(bare)))
    if 2 * sum(map(len, runs)) >= len(bare):  # they repeat: one behind the other, they say nothing
        if made != bare:  # else a secret that repeats itself may have been cut where it does
            repeated = {at for run in runs for at in run}
            bits = [at for at in bits if at not in repeated]
        if overlap is not None:  # to the next window, which begins with them, they are left whole
            until = bisect_left(numbers, overlap.left)
            made[until:] = bare[until:]
    texts = [made[at] for at in bits]
    if overlap is not None and texts:
        del texts[_judged(texts, [numbers[at] for at in bits], clean, overlap) :]
    for at, text in zip(bits, (clean(texts) if texts else None) or (), strict=False):
        made[at] = text
    return made


def _runs(texts: Sequence[str]) -> list[list[int]]:
    """Return the positions of texts each of which begins with the one before it and adds to it."""
    growing: list[list[int]] = []
    ended = []
    for at, text in enumerate(texts):
        for run in growing:
            if text.startswith(texts[run[-1]]):
                run.append(at)
                break
        else:
            growing.append([at])
            if len(growing) > _MOST_RUNS:
                ended.append(growing.pop(0))
    return [
        run
        for run in (*ended, *growing)
        if len(run) > 1
        and len(texts[run[-2]]) >= _LEAST_REPEATED
        and 4 * sum(texts[one] != texts[other] for one, other in pairwise(run)) >= len(run) - 1
    ]


def _clean_run(made: list[str], run: Sequence[int], clean: Clean) -> None:
    """Clean texts of which each repeats the one before it: what each adds is a bit."""
    added = [made[run[0]], *(made[at][len(made[before]) :] for before, at in pairwise(run))]
    whole = ""
    for at, text in zip(run, clean(added) or (), strict=False):
        whole += text
        made[at] = whole


def _judged(texts: Sequence[str], numbers: Sequence[int], clean: Clean, overlap: _Overlap) -> int:
    """Return how many bits of a text that goes on hold what ends among them."""
    made = clean(texts, is_trial=True)
    if made is None or made == texts:
        return 0
    until = bisect_left(numbers, overlap.left)
    while until and numbers[until - 1] >= overlap.begin:
        if made[until - 1] == texts[until - 1]:
            return until
        until -= 1
    return len(texts)  # none before the overlap is known to be untouched, so nothing is left


def _pieces(chunk: Any) -> Iterator[tuple[_Path, Any, Any]]:
    """Yield what a chunk holds that are bits of texts, in order: what names their text, and where.

    A position in a list is a tuple in a path.
    """
    kind = chunk.get("type") if isinstance(chunk, dict) else None
    waiting: list[tuple[Any, _Path]] = [(chunk, (_hashable(kind),))]
    while waiting:
        holder, path = waiting.pop()
        inner = []
        if isinstance(holder, dict):
            path += tuple(_hashable(holder[name]) for name in _PLACES if name in holder)
            children: list[tuple[Any, Any]] = list(holder.items())
        else:
            children = list(enumerate(holder if isinstance(holder, list) else ()))
        for at, value in children:
            # An element that says its index has it in its path.
            says = isinstance(value, dict) and "index" in value
            step = (*path, "" if says else at if isinstance(holder, dict) else (at,))
            is_text = isinstance(value, str) and value and at not in _NAMES
            if is_text or (isinstance(value, list) and _is_bytes(value)):
                yield step, holder, at
            elif isinstance(value, dict | list) and len(path) < _MOST_STEPS:
                inner.append((value, step))
        waiting += reversed(inner)


def _is_bytes(value: list[Any]) -> bool:
    if not value or type(value[0]) is not int:
        return False
    try:
        return bool(bytes(value))
    except (ValueError, TypeError):  # a number that is no byte, or no number
        return False


def _hashable(value: Any) -> str | int | None:
    return value if isinstance(value, str | int | None) else repr(value)


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
        made, rest = _clean_objects(text, self.clean)
        return _clean_events(made, self.clean) if rest > _SHORT_REST else made

    def _walk(self, value: Any) -> None:
        waiting: list[tuple[Any, Any]] = [(value, None)]
        while waiting:
            holder, name = waiting.pop()
            if isinstance(holder, list):
                self._list(holder, name)
            children = holder.items() if isinstance(holder, dict) else enumerate(holder)
            for at, one in children:  # of which values are replaced, and none is added
                if isinstance(one, dict | list):
                    waiting.append((one, at if isinstance(holder, dict) else name))
                elif isinstance(one, str):
                    made = clean_streams(one, self.clean, depth=self.depth + 1)
                    if made is not one:
                        holder[at], self.is_changed = made, True

    def _list(self, listed: list[Any], name: str | None) -> None:
        if _is_bytes(listed):
            chunk = {"": listed}
            if len(listed) >= _LEAST_BYTES and clean_chunks([chunk], self.clean):
                listed[:], self.is_changed = chunk[""], True
            return
        opened = [_opened(one) for one in listed]
        if sum(isinstance(one, dict | list) for one in opened) > 1:
            for number in clean_chunks(opened, self.clean):
                is_text = isinstance(listed[number], str)
                listed[number] = json.dumps(opened[number]) if is_text else opened[number]
                self.is_changed = True
        elif self._is_text_in_pieces(listed, name):
            self.is_changed |= bool(clean_chunks([{"": listed}], self.clean))

    def _is_text_in_pieces(self, listed: list[Any], name: str | None) -> bool:
        if not 1 < len(listed) <= _MOST_PIECES or not (name is None or _OF_PIECES.search(name)):
            return False
        return all(isinstance(one, str) and not one.startswith(("{", "[")) for one in listed)


def _is_crowded(text: str) -> bool:
    """Return whether JSON may hold more than is read at once; signs in its texts count too."""
    if len(text) <= 2 * _MOST_CONTAINERS:
        return False
    containers = text.count("{") + text.count("[")
    return containers > _MOST_CONTAINERS or text.count(",") > _MOST_ELEMENTS


def _opened(value: Any) -> Any:
    """Return a dict or list, or that which a text holds as JSON, else the value or None."""
    if isinstance(value, str) and value.lstrip().startswith(("{", "[")):
        return _value_of(value)
    return value


def _value_of(text: str) -> Any:
    """Return the dict, list or string that a text holds as JSON; None of any other."""
    if not text.lstrip().startswith(_JSON_STARTS) or not text.rstrip().endswith(_JSON_ENDS):
        return None
    if _is_crowded(text):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _clean_objects(text: str, clean: Clean) -> tuple[str, int]:
    """Clean JSON objects that follow each other: a line each, or a list that was cut off.

    One that is longer than a window ends them. Returns how many characters follow them, too.
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
    return text if made == text else made, rest + max(0, len(text) - at)


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
        line_end = _LINE_END.search(text, at + _window_of_lines(text, at))
        end = line_end.end() if line_end else len(text)
        goes_on = end < len(text)
        window, begin = _clean_lines(window + text[at:end], clean, goes_on=goes_on)
        at = end
        if goes_on:
            done.append(window[:begin])
            window = window[begin:]
    made = "".join((*done, window))
    return text if made == text else made


def _window_of_lines(text: str, start: int) -> int:
    """Return the length of a window of lines: of very short ones, fewer are read at once."""
    chars = _WINDOW_CHARS
    while chars > _MOST_LINES:
        end = start + chars
        if text.count("\n", start, end) + text.count("\r", start, end) <= _MOST_LINES:
            break
        chars //= 2
    return chars


def _clean_lines(text: str, clean: Clean, *, goes_on: bool) -> tuple[str, int]:
    """Clean the events in a text; return it, and where in it the next window begins."""
    lines = _LINES.findall(text)
    events = _events(lines)
    begin, left = _overlap_lines(lines) if goes_on else (0, 0)
    overlap = _Overlap(begin, left) if goes_on else None
    parts = [part for event in events for part in _parts(lines, event)]
    is_changed = _clean_parts(lines, parts, clean, overlap)
    # Senders differ in whether a line of its own is a line of the text: as bits once more.
    bits = [
        _Part((at,), _Line("data: ", [_data_of(lines[at])], 0, is_text=True))
        for one in parts
        if one.line.is_text
        for at in one.lines
    ]
    if len(bits) > len(parts) or len(events) == 1:
        is_changed |= _clean_parts(lines, bits, clean, overlap)
    return ("".join(lines) if is_changed else text), sum(map(len, lines[:begin]))


def _overlap_lines(lines: Sequence[str]) -> tuple[int, int]:
    """Return the line that the next window begins with, and the first that is left to it."""
    least = max(0, len(lines) - _MOST_LINES // 2)
    end, length, left = len(lines), 0, len(lines)
    while end > least and length < _OVERLAP_CHARS:
        end -= 1
        length += len(lines[end])
        if length <= _OVERLAP_CHARS // 2 and end >= len(lines) - _MOST_LINES // 4:
            left = end
    event = next((at for at in range(end, left) if not lines[at].strip("\r\n")), None)
    return (end if event is None else event + 1), left


class _Part(NamedTuple):
    """The data of one or several `data:` lines, or of a line with another prefix or none."""

    lines: tuple[int, ...]
    line: _Line


def _events(lines: Sequence[str]) -> list[list[int]]:
    """Return the `data:` lines of each event, which an empty line ends, and other lines of JSON."""
    events: list[list[int]] = [[]]
    others = []
    for at, line in enumerate(lines):
        if line.startswith("data:"):
            events[-1].append(at)
        elif not line.strip("\r\n"):
            if events[-1]:
                events.append([])
        elif _PREFIX.match(line):
            others.append([at])
    return sorted([*(event for event in events if event), *others])


def _parts(lines: Sequence[str], event: Sequence[int]) -> list[_Part]:
    """Return the data of an event: its lines together, or each, where one of them is JSON."""
    if not lines[event[0]].startswith("data:"):
        line = line_of(lines[event[0]].rstrip("\r\n"))
        return [] if line.is_text else [_Part(tuple(event), line)]
    texts = [_data_of(lines[at]) for at in event]
    whole = _data_line("\n".join(texts))
    opened = [_data_line(text) for text in texts] if whole.is_text and len(texts) > 1 else []
    if all(one.is_text for one in opened):
        return [_Part(tuple(event), whole)]
    return [_Part((at,), one) for at, one in zip(event, opened, strict=True)]


def _data_line(text: str) -> _Line:
    value = _value_of(text)
    if value is None:
        return _Line("data: ", [text], 0, is_text=True)
    return _opened_line("data: ", value)


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
    changed = clean_chunks([part.line.chunk for part in parts], clean, overlap)
    for part in (parts[number] for number in changed):
        start = part.line.start
        texts = part.line.written().split("\n", len(part.lines) - 1)
        ends = [lines[at][len(lines[at].rstrip("\r\n")) :] for at in part.lines]
        for at in part.lines:
            lines[at] = ""
        for at, line in zip(part.lines, texts, strict=False):
            lines[at] = f"{start}{line}{ends[0]}"
        lines[part.lines[len(texts) - 1]] = f"{start}{texts[-1]}{ends[-1]}"
    return bool(changed)
