"""Cutting secrets and content out of OTLP messages, field by field, in place.

Every string and every bytes field there is, is found by reflection, so that a field added to OTLP
tomorrow is covered. The collector and the SDK clean with the same code.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.unknown_fields import UnknownFieldSet

from hansard_compiler.redaction.checks import is_sensitive_key
from hansard_compiler.redaction.metadata_only import Withholder
from hansard_compiler.redaction.redactor import EVERYTHING, Redactor, SecretFinding

Removed = Counter[tuple[str, str]]  # (rule, field) -> how many
CleanPart = Callable[[Message, str], Removed]  # of a resource, scope or item; and its name's prefix
SPAN_LEVELS = ("resource_spans", "scope_spans", "spans")
LOG_LEVELS = ("resource_logs", "scope_logs", "log_records")
METRIC_LEVELS = ("resource_metrics", "scope_metrics", "metrics")

_ID_BYTES = 16  # a trace or span id: too short for a secret, and replaced it would be no id
_LABEL_CHARS = 120
# What an AnyValue is that holds no text: vectors have many thousand of them. None: it is empty.
WITHOUT_TEXT: Final = frozenset({None, "int_value", "double_value", "bool_value"})
_MAX_PLAIN_NAMES = 10_000
_NAME = re.compile(r"[A-Za-z0-9_.\-]{1,100}")
_VALUE = re.compile(r"(?:[A-Za-z\-]{3,20} )?\S*")


def _announces_secret(key: str) -> bool:
    return is_sensitive_key(key.encode())


class MessageCleaner:
    """Cleans resources, scopes, spans, log records and metrics; remembers names of attributes.

    Used by one thread at a time.
    """

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._withholder = Withholder(redactor)
        self._plain_names: set[str] = set()

    def redact(self, part: Message, prefix: str) -> Removed:
        """Cut the secrets out of a resource, a scope or an item."""
        if not self._redactor.scan_bytes(part.SerializeToString()):
            return Counter()
        walk = _Walk(self._redactor, self._plain_names)
        walk.message(part, prefix)
        self._drop_unknown_fields(part, prefix, walk.found)
        return walk.found

    def _drop_unknown_fields(self, part: Message, prefix: str, found: Removed) -> None:
        """Drop the fields our classes do not know, if a secret may be in one of them.

        They have no form to cut a secret out of, so suspicion is enough. They are rare; most calls
        end at the second line, since the walk has removed what made the part suspicious.
        """
        raw = part.SerializeToString()
        if not self._redactor.scan_bytes(raw):
            return
        known = type(part)()
        known.CopyFrom(part)
        known.DiscardUnknownFields()
        if known.ByteSize() == len(raw):
            return
        if any(self._redactor.scan_bytes(data) for data in _unknown_data(part)):
            part.DiscardUnknownFields()
            found[EVERYTHING, f"{prefix}unknown fields"] += 1

    def withhold(self, part: Message, prefix: str) -> Removed:
        """Withhold content first: only in what is stored, secrets are worth looking for."""
        withheld = self._withholder.withhold(part)
        removed = self.redact(part, prefix)
        if withheld:
            removed["withheld", prefix.rstrip(".")] = withheld
        return removed


def _unknown_data(message: Message) -> Iterator[bytes]:
    """Return the bytes of every field that has them and that our classes do not know."""
    yield from _data_of(UnknownFieldSet(message))
    for field, value in message.ListFields():
        if field.type == FieldDescriptor.TYPE_MESSAGE:
            for child in value if field.is_repeated else (value,):
                yield from _unknown_data(child)


def _data_of(fields: UnknownFieldSet) -> Iterator[bytes]:
    for field in fields:
        if isinstance(field.data, bytes):
            yield field.data
        elif isinstance(field.data, UnknownFieldSet):  # a group
            yield from _data_of(field.data)


class _Walk:
    """Cuts the secrets out of every text and bytes field below a message."""

    def __init__(self, redactor: Redactor, plain_names: set[str]) -> None:
        self._redactor = redactor
        self._plain_names = plain_names  # attribute names that hold no secret, of all requests
        self.found: Removed = Counter()  # (rule, field) -> how many

    def message(self, message: Message, prefix: str) -> None:
        for field, value in message.ListFields():
            if field.type == FieldDescriptor.TYPE_MESSAGE:
                self._children(field, value, prefix)
            elif field.type in (FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_BYTES):
                self._scalars(message, field, value, prefix)

    def _children(self, field: FieldDescriptor, value: Any, prefix: str) -> None:
        if not field.is_repeated:
            self._child(field, value, f"{prefix}{field.name}")
            return
        for index, child in enumerate(value):
            if child.DESCRIPTOR.name == "KeyValue":
                self._pair(child, f"{prefix}{field.name}.")
            else:
                self._child(field, child, f"{prefix}{field.name}[{index}]")

    def _child(self, field: FieldDescriptor, child: Message, name: str) -> None:
        if child.DESCRIPTOR.name == "AnyValue":
            self._value(child, name, key="")
        else:
            self.message(child, f"{name}.")

    def _scalars(self, message: Message, field: FieldDescriptor, value: Any, prefix: str) -> None:
        name = f"{prefix}{field.name}"
        if field.is_repeated:
            for index, item in enumerate(value):
                value[index] = self._clean(item, name)
        elif isinstance(value, str) or len(value) > _ID_BYTES:
            setattr(message, field.name, self._clean(value, name))

    def _pair(self, pair: Any, prefix: str) -> None:
        key = pair.key
        if key not in self._plain_names:
            pair.key = self._clean(key, f"{prefix}key")
            self._remember_plain(key, pair.key)
        self._value(pair.value, prefix + pair.key[:_LABEL_CHARS], key=key)

    def _remember_plain(self, key: str, clean: str) -> None:
        if key == clean and len(key) <= _LABEL_CHARS and len(self._plain_names) < _MAX_PLAIN_NAMES:
            self._plain_names.add(key)

    def _value(self, value: Any, name: str, *, key: str) -> None:
        """Clean an AnyValue; `key` is the name it is under, or a sensitive one further out."""
        kind = value.WhichOneof("value")
        if kind in ("string_value", "bytes_value"):
            setattr(value, kind, self._clean(getattr(value, kind), name, key=key))
        elif kind == "array_value":
            for index, item, item_key in _with_flags(value.array_value.values, key):
                self._value(item, f"{name}[{index}]", key=item_key)
        elif kind == "kvlist_value":
            announced = _name_in(value.kvlist_value.values)
            for pair in value.kvlist_value.values:
                own = pair.key
                pair.key = self._clean(own, f"{name}.key")
                inner = own if _announces_secret(own) else key
                if announced and own.lower() == "value":
                    inner = announced
                self._value(pair.value, f"{name}.{pair.key[:_LABEL_CHARS]}", key=inner)

    def _clean(self, text: Any, name: str, *, key: str = "") -> Any:
        is_text = isinstance(text, str)
        raw = text.encode() if is_text else text
        if not (key and _announces_secret(key)) and not self._redactor.scan_bytes(raw):
            return text
        clean: str | bytes
        findings: list[SecretFinding]
        if is_text:
            clean, findings = self._redactor.redact_text(text, key=key)
        else:
            clean, findings = self._redactor.redact_bytes(text, key=key)
        for finding in findings:
            self.found[finding.rule, name] += finding.count
        return clean


def _with_flags(values: Any, key: str) -> Iterator[tuple[int, Any, str]]:
    """Yield each element that is no number, its position, and the name it is under.

    `["x-api-key", "…"]` names its second.

    A name is one word, and so is what it names, but for the scheme of a header (`Token …`).
    """
    previous = ""
    for index, value in enumerate(values):
        if value.WhichOneof("value") in WITHOUT_TEXT:
            previous = ""
            continue
        is_named = bool(previous) and _VALUE.fullmatch(value.string_value) is not None
        yield index, value, previous if is_named else key
        previous = value.string_value
        if not (_NAME.fullmatch(previous) and _announces_secret(previous)):
            previous = ""


def _name_in(pairs: Any) -> str:
    """Return the telling name that a map of a name and a value holds: `{"name": …, "value": …}`."""
    for pair in pairs:
        if pair.key.lower() in ("name", "key"):
            name: str = pair.value.string_value
            return name if _NAME.fullmatch(name) and _announces_secret(name) else ""
    return ""


def clean_items(message: Any, levels: Sequence[str], part: CleanPart) -> dict[int, Removed]:
    """Clean every resource, scope, schema URL and item of a request; return what went, by item.

    Items are counted from 0 over the whole request; what a resource or scope lost comes with its
    first item. An item that lost nothing is absent.
    """
    outer, inner, leaf = levels
    removed: dict[int, Removed] = {}
    index = 0
    for resource_level in getattr(message, outer):
        above = _envelope(resource_level, "resource", part)
        for scope_level in getattr(resource_level, inner):
            above += _envelope(scope_level, "scope", part)
            for item in getattr(scope_level, leaf):
                found = above + part(item, "")
                above = Counter()
                if found:
                    removed[index] = found
                index += 1
    return removed


def _envelope(level: Any, name: str, part: CleanPart) -> Removed:
    """Clean the resource or scope of a level, and the level's schema URL."""
    found: Removed = Counter()
    if level.HasField(name):
        found += part(getattr(level, name), f"{name}.")
    if level.schema_url:
        # A message of its own: the level itself holds all the items, too.
        shell = type(level)(schema_url=level.schema_url)
        found += part(shell, f"{name}.")
        level.schema_url = shell.schema_url
    return found
