"""JSON text that is edited in place: what is not edited keeps its bytes.

A parser that keeps everything: white space, the spelling of numbers (`1.0`, `1e3`), escapes, the
order of keys, duplicate keys. Writing an unedited text gives the same text. Grammar: RFC 8259, with
`NaN` and `Infinity`, which Python's own writer emits.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from itertools import islice
from json.decoder import scanstring  # type: ignore[attr-defined]  # public, but not in the stubs
from typing import Any, Final, TypeAlias

from hansard_compiler.canonical import canonical_json
from hansard_compiler.errors import HansardError

DEEPEST: Final = 250  # levels; each takes one frame of Python's stack
LONGEST_NUMBER: Final = 4_000  # characters; Python reads whole numbers of up to 4,300 digits
_BLANK = re.compile(r"[ \t\n\r]*")
_LITERAL = re.compile(
    r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?|true|false|null|NaN|-?Infinity"
)
_ESCAPED_LETTER = re.compile(r"\\u(?!00[0-7])[0-9a-fA-F]{4}")  # of a character above U+007F
_ITEMS_ALIGNED: Final = 4_000  # of arrays of more, elements are held against those at their place


class NotEditable(HansardError):
    """A text that is no JSON, nested too deeply, or has a number too long to be edited."""

    code = "json_not_editable"


@dataclass(slots=True)
class Scalar:
    """A string, number or literal, as it is written."""

    text: str


@dataclass(slots=True)
class Member:
    """A key with its value; `before`, `between` and `after` are the white space and the colon."""

    before: str
    key: str
    key_text: str
    between: str
    value: Node
    after: str


@dataclass(slots=True)
class Element:
    """A value of an array, with the white space around it."""

    before: str
    value: Node
    after: str


@dataclass(slots=True)
class Object:
    """Members in their order, duplicates included; `blank` is the white space of an empty one."""

    members: list[Member] = field(default_factory=list)
    blank: str = ""


@dataclass(slots=True)
class Array:
    """Elements in their order."""

    elements: list[Element] = field(default_factory=list)
    blank: str = ""


Node: TypeAlias = Scalar | Object | Array


class JsonText:
    """A JSON text under edit. Not safe to share between threads."""

    def __init__(self, data: bytes) -> None:
        """Parse UTF-8; raises NotEditable. Linear: 10 MB/s, more where strings are long."""
        try:
            text = data.decode()
        except UnicodeDecodeError as error:
            raise NotEditable(f"it is not UTF-8: {error}") from None
        self._head, self.root, self._tail = _Parser(text).document()
        self._is_ascii = text.isascii() and _ESCAPED_LETTER.search(text) is not None
        is_spaced = any(" " in one.between for one in islice(every_member(self.root), 1))
        self._comma, self._colon = (", ", ": ") if is_spaced else (",", ":")

    def bytes(self) -> bytes:
        """Return the text with its edits, in UTF-8."""
        pieces = [self._head]
        _write(self.root, pieces)
        pieces.append(self._tail)
        return "".join(pieces).encode()

    # ---- edits

    def node(self, value: Any) -> Node:
        """Return a new value, written as the rest of the text: spaced or not, escaped or not."""
        separators = (self._comma, self._colon)
        text = json.dumps(value, ensure_ascii=self._is_ascii, separators=separators)
        try:
            text.encode()
        except UnicodeEncodeError:  # a lone surrogate: only its escape is valid UTF-8
            text = json.dumps(value, separators=separators)
        return _Parser(text).document()[1]

    def set(self, parent: Object, key: str, value: Any) -> bool:
        """Give a key a value; returns False where it has an equal one, and nothing is edited.

        Of duplicate keys the last one is edited: it is the one that JSON parsers read.
        """
        member = find(parent, key)
        if member is None:
            self.insert_member(parent, key, self.node(value))
            return True
        return self.replace(member, value)

    def replace(self, holder: Member | Element, value: Any) -> bool:
        """Replace a value; returns False where the old one is equal, and keeps its spelling."""
        if same(value_of(holder.value), value):
            return False
        holder.value = self.node(value)
        return True

    def insert_member(self, parent: Object, key: str, value: Node) -> None:
        """Add a key at the end of an object, spaced like the ones before it."""
        members = parent.members
        before, after = self._spacing(members, parent.blank)
        if members:
            members[-1].after = ""
        key_text = json.dumps(key, ensure_ascii=self._is_ascii)
        between = members[-1].between if members else self._colon
        members.append(Member(before, key, key_text, between, value, after))

    def insert(self, parent: Array, at: int, value: Node) -> None:
        """Insert an element, spaced like the ones beside it."""
        elements = parent.elements
        if not elements or at >= len(elements):
            before, after = self._spacing(elements, parent.blank)
            if elements:
                elements[-1].after = ""
            elements.append(Element(before, value, after))
            return
        follower = elements[at]
        new = Element(follower.before, value, "")
        if at == 0 and "\n" not in follower.before:
            follower.before = " " if self._comma == ", " else follower.before
        elements.insert(at, new)

    def into_list(self, holder: Member, first: Mapping[str, Any]) -> Array:
        """Replace a value by a list of one object, whose last field the value becomes."""
        made = self.node(first)
        assert isinstance(made, Object)
        made.members[-1].value = holder.value
        holder.value = Array([Element("", made, "")])
        return holder.value

    def _spacing(self, siblings: Sequence[Member | Element], blank: str) -> tuple[str, str]:
        """Return the white space before and after what is added last."""
        if not siblings:
            return "", blank
        last = siblings[-1]
        if len(siblings) > 1 or "\n" in last.before:
            return last.before, last.after
        return (" " if self._comma == ", " else ""), last.after

    def rewrite(self, holder: Member | Element | None, new: Any) -> None:
        """Make a value (None: the whole text) equal to another; what is equal keeps its text."""
        node = self.root if holder is None else holder.value
        old = value_of(node)
        if same(old, new):
            return
        if isinstance(node, Object) and isinstance(new, Mapping):
            self._rewrite_object(node, new)
        elif isinstance(node, Array) and _is_list(new):
            self._rewrite_array(node, new)
        elif holder is None:
            self.root = self.node(new)
        else:
            holder.value = self.node(new)

    def _rewrite_object(self, node: Object, new: Mapping[str, Any]) -> None:
        for key in {member.key for member in node.members}:
            if key not in new:
                remove(node, key)
        for key, value in new.items():
            member = find(node, key)
            if member is None:
                self.insert_member(node, key, self.node(value))
            else:
                self.rewrite(member, value)

    def _rewrite_array(self, node: Array, new: Sequence[Any]) -> None:
        before = [_key(value_of(one.value)) for one in node.elements]
        after = [_key(one) for one in new]
        made: list[Callable[[], None]] = []
        for tag, left, left_end, right, right_end in reversed(_aligned(before, after)):
            if tag == "equal":
                continue
            shared = min(left_end - left, right_end - right)
            for offset in range(shared):
                element = node.elements[left + offset]
                made.append(lambda one=element, at=right + offset: self.rewrite(one, new[at]))  # type: ignore[misc]
            for at in range(left_end - 1, left + shared - 1, -1):
                remove_at(node, at)
            for at in range(right + shared, right_end):
                self.insert(node, left + at - right, self.node(new[at]))
        for change in made:
            change()


def _aligned(before: list[str], after: list[str]) -> list[tuple[str, int, int, int, int]]:
    if max(len(before), len(after)) <= _ITEMS_ALIGNED:
        return SequenceMatcher(None, before, after, autojunk=False).get_opcodes()  # type: ignore[return-value]
    shared = min(len(before), len(after))
    found = [("replace", at, at + 1, at, at + 1) for at in range(shared) if before[at] != after[at]]
    return [*found, ("replace", shared, len(before), shared, len(after))]


# ---- reading


def find(parent: Node | None, key: str) -> Member | None:
    """Return the member that parsers read under a key: the last of duplicates."""
    if not isinstance(parent, Object):
        return None
    return next((one for one in reversed(parent.members) if one.key == key), None)


def count_of(parent: Object, key: str) -> int:
    """Return how often an object has a key."""
    return sum(one.key == key for one in parent.members)


def value_of(node: Node) -> Any:
    """Return a node's value as `json.loads` reads it."""
    if isinstance(node, Scalar):
        return json.loads(node.text)
    if isinstance(node, Array):
        return [value_of(one.value) for one in node.elements]
    return {one.key: value_of(one.value) for one in node.members}


def text_at(parent: Node | None, key: str) -> str | None:
    """Return the string under a key; None where there is none."""
    member = find(parent, key)
    value = None if member is None or not isinstance(member.value, Scalar) else member.value.text
    return json.loads(value) if value is not None and value.startswith('"') else None


def elements_at(parent: Node | None, key: str) -> list[Element]:
    """Return the elements of the array under a key; none where there is no array."""
    member = find(parent, key)
    return member.value.elements if member and isinstance(member.value, Array) else []


def every_member(node: Node) -> Iterator[Member]:
    """Yield the members of all objects in a node, duplicates included."""
    if isinstance(node, Object):
        for one in node.members:
            yield one
            yield from every_member(one.value)
    elif isinstance(node, Array):
        for element in node.elements:
            yield from every_member(element.value)


def same(left: Any, right: Any) -> bool:
    """Whether two JSON values are equal: numbers by value (1 and 1.0), booleans are no numbers."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if _is_list(left) and _is_list(right):
        return len(left) == len(right) and all(map(same, left, right))
    return bool(left == right)


def _key(value: Any) -> str:
    """Return what two values have in common that are the `same`."""
    return canonical_json(_whole(value))


def _whole(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, Mapping):
        return {key: _whole(one) for key, one in value.items()}
    return [_whole(one) for one in value] if _is_list(value) else value


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


# ---- removing


def remove(parent: Object, key: str) -> int:
    """Remove a key, duplicates included; returns how many were there."""
    found = [at for at, one in enumerate(parent.members) if one.key == key]
    for at in reversed(found):
        _remove(parent.members, at, parent)
    return len(found)


def remove_at(parent: Array, at: int) -> None:
    """Remove an element."""
    _remove(parent.elements, at, parent)


def _remove(siblings: list[Any], at: int, parent: Object | Array) -> None:
    """Remove one of some siblings; what closes the list keeps its white space."""
    gone = siblings.pop(at)
    if not siblings:
        parent.blank = ""
    elif at == 0:
        siblings[0].before = gone.before
    elif at == len(siblings):
        siblings[-1].after = siblings[-1].after or gone.after


# ---- writing and parsing


def _write(node: Node, pieces: list[str]) -> None:
    if isinstance(node, Scalar):
        pieces.append(node.text)
        return
    is_object = isinstance(node, Object)
    pieces.append("{" if is_object else "[")
    siblings: Sequence[Member | Element] = node.members if is_object else node.elements  # type: ignore[union-attr]
    for number, one in enumerate(siblings):
        pieces.append("," + one.before if number else one.before)
        if isinstance(one, Member):
            pieces += (one.key_text, one.between)
        _write(one.value, pieces)
        pieces.append(one.after)
    if not siblings:
        pieces.append(node.blank)
    pieces.append("}" if is_object else "]")


class _Parser:
    """A recursive parser of one text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def document(self) -> tuple[str, Node, str]:
        head = self._blank()
        root = self._value(0)
        tail = self._blank()
        if self._at != len(self._text):
            raise self._wrong("the end")
        return head, root, tail

    def _value(self, depth: int) -> Node:
        if depth > DEEPEST:
            raise NotEditable(f"it is nested deeper than {DEEPEST} levels")
        opening = self._text[self._at : self._at + 1]
        if opening == "{":
            return self._object(depth)
        if opening == "[":
            return self._array(depth)
        start = self._at
        if opening == '"':
            self._string()
            return Scalar(self._text[start : self._at])
        found = _LITERAL.match(self._text, start)
        if found is None:
            raise self._wrong("a value")
        if len(found[0]) > LONGEST_NUMBER:
            raise NotEditable(f"it has a number of more than {LONGEST_NUMBER:,} characters")
        self._at = found.end()
        return Scalar(found[0])

    def _object(self, depth: int) -> Object:
        self._at += 1
        made = Object()
        while True:
            before = self._blank()
            if not made.members and self._takes("}"):
                made.blank = before
                return made
            start = self._at
            key = self._string()
            key_text = self._text[start : self._at]
            between = self._blank() + self._take(":") + self._blank()
            value = self._value(depth + 1)
            made.members.append(Member(before, key, key_text, between, value, self._blank()))
            if self._takes("}"):
                return made
            self._take(",")

    def _array(self, depth: int) -> Array:
        self._at += 1
        made = Array()
        while True:
            before = self._blank()
            if not made.elements and self._takes("]"):
                made.blank = before
                return made
            value = self._value(depth + 1)
            made.elements.append(Element(before, value, self._blank()))
            if self._takes("]"):
                return made
            self._take(",")

    def _string(self) -> str:
        if self._text[self._at : self._at + 1] != '"':
            raise self._wrong("a string")
        try:
            value, self._at = scanstring(self._text, self._at + 1, True)
        except ValueError:
            raise self._wrong("a string that ends") from None
        return str(value)

    def _blank(self) -> str:
        found = _BLANK.match(self._text, self._at)
        assert found is not None  # it matches nothing, too
        self._at = found.end()
        return found[0]

    def _takes(self, mark: str) -> bool:
        is_there = self._text.startswith(mark, self._at)
        self._at += is_there
        return is_there

    def _take(self, mark: str) -> str:
        if not self._takes(mark):
            raise self._wrong(repr(mark))
        return mark

    def _wrong(self, expected: str) -> NotEditable:
        return NotEditable(f"it is not JSON: expected {expected} at character {self._at}")
