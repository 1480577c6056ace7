"""`metadata_only`: replaces every text that is not known to be metadata by its length.

The safe reading of "no content bytes anywhere", and where it gives:

- An attribute's text stays only under a name of the allow-list (`metadata_keys`), and only if it
  looks like metadata: at most 256 bytes, one line, few words. Arrays are judged element by element;
  structured values (maps, and anything under other names) are replaced whole, numbers included,
  because a number inside an argument or a document is content.
- Names that code gives (spans, span events, scopes, metrics, attributes, log events) stay when they
  read like identifiers: words of letters joined by ``. _ - / :``, hardly any digits. That keeps
  `get_weather`, `ChatOpenAI`, `openai.chat`, and withholds sentences, ids and tokens. A span's name
  may also be an operation and one of the span's own stored values (`chat gpt-4o-mini`,
  `POST /v1/messages`), since it then adds nothing to what is stored beside it. A product whose runs
  all read ‹withheld:14› would not be used, and an unused record protects nobody.
- Withheld whatever they hold: status messages, exception messages and stack traces, log bodies
  (but for the event names that some senders put there), metric descriptions, trace state, bytes.
- Digests of content become HMACs: who guesses a text cannot confirm it by its hash.
- Ids stay if they have the length of ids. Fields unknown to our protobuf classes are dropped.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from hansard_compiler.redaction.metadata_keys import KeyKind, kind_of
from hansard_compiler.redaction.redactor import Redactor

_MAX_NAME_BYTES = 256
_MAX_SPACES = 10
_MAX_CODE_NAME_CHARS = 128
_ID_BYTES = {"trace_id": 16, "span_id": 8, "parent_span_id": 8}

_WITHHELD = re.compile("‹withheld:[0-9]{1,12}›")
_HMAC = re.compile("hmac-sha256:[0-9a-f]{64}")
_CONTENT_DIGEST = re.compile("sha(?:1|256|384|512):[0-9a-fA-F]{8,128}")
# One word of an identifier: letters and at most three digits, `OAuth2Client`, or something short.
_WORD = (
    "(?:[A-Za-z]{1,32}(?:[0-9]{1,3}|[0-9][A-Z][a-z]+[A-Za-z]{0,24})?|[0-9]{1,3}|[A-Za-z0-9]{1,3})"
)
_CODE_NAME = re.compile(f"[@_]{{0,2}}{_WORD}(?:[._/:-]{{1,2}}{_WORD})*_?")
_VERSION = re.compile(
    r"v?[0-9]{1,5}(?:\.[0-9]{1,8}){0,4}(?:[-+.]?(?:a|b|rc|alpha|beta|dev|post|SNAPSHOT)[.0-9]{0,6})?"
)
_UNIT = re.compile(
    r"(?:[A-Za-z%]{1,8}|1|\{[A-Za-z_]{1,24}\})(?:/(?:[A-Za-z]{1,8}|\{[A-Za-z_]{1,24}\}))?"
)
_SEMCONV_URL = re.compile(r"https://opentelemetry\.io/schemas/[0-9.]{1,16}(?:-dev)?")
_SEVERITY = re.compile("(?i:trace|debug|info|warn|error|fatal)[1-4]?", re.ASCII)
_SEVERITY_WORDS = frozenset(
    {
        *("information", "warning", "err", "critical", "crit", "notice", "alert"),
        *("emergency", "emerg", "verbose", "unspecified"),
    }
)
_BODY_NAME = re.compile(r"(?:claude_code|codex|gemini_cli|gen_ai|hansard)(?:\.[a-z_]{1,40}){1,5}")
_KNOWN_NAMES = frozenset(
    {
        *("First Token Stream Event", "Received Proxy Server Request", "agent run"),
        *("running tool", "execute_tool (merged tools)"),
    }
)


def is_code_name(text: str) -> bool:
    """Return whether a text reads like a name in code and not like content, an id or a token."""
    return len(text) <= _MAX_CODE_NAME_CHARS and bool(_CODE_NAME.fullmatch(text))


def _is_event_name(text: str) -> bool:
    return is_code_name(text) or text in _KNOWN_NAMES


def _is_severity(text: str) -> bool:
    return bool(_SEVERITY.fullmatch(text)) or text.lower() in _SEVERITY_WORDS


_PROTO = "opentelemetry.proto."
# Text fields that may stay, and when; a text field that is not here is withheld.
_JUDGES: dict[str, Callable[[str], bool]] = {
    f"{_PROTO}trace.v1.Span.Event.name": _is_event_name,
    f"{_PROTO}common.v1.InstrumentationScope.name": is_code_name,
    f"{_PROTO}common.v1.InstrumentationScope.version": lambda text: bool(_VERSION.fullmatch(text)),
    f"{_PROTO}common.v1.EntityRef.type": is_code_name,
    f"{_PROTO}common.v1.EntityRef.id_keys": is_code_name,
    f"{_PROTO}common.v1.EntityRef.description_keys": is_code_name,
    f"{_PROTO}logs.v1.LogRecord.event_name": is_code_name,
    f"{_PROTO}logs.v1.LogRecord.severity_text": _is_severity,
    f"{_PROTO}metrics.v1.Metric.name": is_code_name,
    f"{_PROTO}metrics.v1.Metric.unit": lambda text: bool(_UNIT.fullmatch(text)),
}
_SCHEMA_URL = "schema_url"  # of several messages
_SPAN_NAME = f"{_PROTO}trace.v1.Span.name"  # judged with the span's attributes


class Withholder:
    """Replaces content by its length; equal digests of content stay equal under one key."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor

    def withhold(self, part: Message) -> int:
        """Withhold the content of a resource, scope or item, in place; return of how many texts."""
        part.DiscardUnknownFields()
        return self._message(part)

    def _message(self, message: Any) -> int:
        withheld = 0
        for field, value in message.ListFields():
            if field.type == FieldDescriptor.TYPE_MESSAGE:
                withheld += self._children(field, value)
            elif field.type == FieldDescriptor.TYPE_STRING:
                withheld += _withhold_text(message, field, value)
            elif field.type == FieldDescriptor.TYPE_BYTES:
                withheld += _withhold_bytes(message, field, value)
        if message.DESCRIPTOR.full_name == f"{_PROTO}trace.v1.Span":
            withheld += _withhold_span_name(message)
        return withheld

    def _children(self, field: FieldDescriptor, value: Any) -> int:
        kind = field.message_type.name
        if kind == "KeyValue":
            return self._pairs(value)
        if kind == "AnyValue":
            return _withhold_body(value)
        if field.is_repeated:
            return sum(self._message(child) for child in value)
        return self._message(value)

    def _pairs(self, pairs: Iterable[Any]) -> int:
        withheld = 0
        for pair in pairs:
            kind = kind_of(pair.key)
            if kind is KeyKind.CONTENT and not _may_stay(pair.key, is_code_name):
                pair.key = _length_of(pair.key.encode())
                withheld += 1
            if pair.HasField("value"):
                withheld += self._value(pair.value, kind)
        return withheld

    def _value(self, value: Any, kind: KeyKind) -> int:
        held = value.WhichOneof("value")
        if held == "string_value":
            text = value.string_value
            stored = self._stored_text(text, kind)
            if stored != text:
                value.string_value = stored
            return int(stored is not text)
        if held == "array_value" and kind is not KeyKind.CONTENT:
            return sum(self._value(item, kind) for item in value.array_value.values)
        return _withhold_value(value)

    def _stored_text(self, text: str, kind: KeyKind) -> str:
        """Return a text as it may be stored: itself (the same object), its HMAC or its length."""
        if _is_marker(text) or not text:
            return text
        if kind is KeyKind.DIGEST or (kind is KeyKind.NAME and _CONTENT_DIGEST.fullmatch(text)):
            if _HMAC.fullmatch(text):
                return text
            return f"hmac-sha256:{self._redactor.keyed_digest(text.encode())}"
        if kind is KeyKind.NAME and looks_like_metadata(text):
            return text
        if kind is KeyKind.NUMBERS and _holds_only_numbers(text):
            return text
        return _length_of(text.encode())


def looks_like_metadata(text: str) -> bool:
    """Return whether a text under an allowed name is short, on one line and not a sentence."""
    return (
        len(text) <= _MAX_NAME_BYTES
        and len(text.encode()) <= _MAX_NAME_BYTES
        and text.isprintable()
        and text.count(" ") <= _MAX_SPACES
    )


def _holds_only_numbers(text: str) -> bool:
    """Recognise a number, or a JSON object of numbers whose names are identifiers."""
    if len(text) > 4096:
        return False
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return False
    if isinstance(value, str):  # MLflow encodes twice
        return _holds_only_numbers(value) if value != text else False
    return _is_numeric(value)


def _is_numeric(value: Any) -> bool:
    if isinstance(value, dict):
        return all(is_code_name(key) and _is_numeric(child) for key, child in value.items())
    return value is None or isinstance(value, int | float)


def _is_marker(text: str) -> bool:
    return text.startswith("‹withheld:") and bool(_WITHHELD.fullmatch(text))


def _length_of(data: bytes) -> str:
    return f"‹withheld:{len(data)}›"


def _withhold_text(message: Any, field: FieldDescriptor, value: Any) -> int:
    judge = _JUDGES.get(field.full_name)
    if field.name == _SCHEMA_URL:
        judge = _is_schema_url
    if field.full_name == _SPAN_NAME:
        return 0
    if field.is_repeated:
        bad = [i for i, text in enumerate(value) if not _may_stay(text, judge)]
        for index in bad:
            value[index] = _length_of(value[index].encode())
        return len(bad)
    if _may_stay(value, judge):
        return 0
    setattr(message, field.name, _length_of(value.encode()))
    return 1


def _is_schema_url(text: str) -> bool:
    return bool(_SEMCONV_URL.fullmatch(text))


def _may_stay(text: str, judge: Callable[[str], bool] | None) -> bool:
    return not text or _is_marker(text) or (judge is not None and judge(text))


def _withhold_bytes(message: Any, field: FieldDescriptor, value: bytes) -> int:
    if len(value) == _ID_BYTES.get(field.name):
        return 0
    message.ClearField(field.name)
    return 1


def _withhold_span_name(span: Any) -> int:
    name = span.name
    if _may_stay(name, _is_event_name):
        return 0
    names = {
        pair.value.string_value for pair in span.attributes if kind_of(pair.key) is KeyKind.NAME
    }
    operation, _, subject = name.partition(" ")
    if name in names or (subject in names and is_code_name(operation)):
        return 0
    span.name = _length_of(name.encode())
    return 1


def _withhold_body(body: Any) -> int:
    """Withhold a log record's body; some senders put the event's name there, and nothing else."""
    if body.WhichOneof("value") == "string_value" and _BODY_NAME.fullmatch(body.string_value):
        return 0
    return _withhold_value(body)


def _withhold_value(value: Any) -> int:
    """Replace an AnyValue by its length, whatever it holds but a number, a boolean or nothing."""
    held = value.WhichOneof("value")
    if held == "string_value":
        if _is_marker(value.string_value) or not value.string_value:
            return 0
        value.string_value = _length_of(value.string_value.encode())
    elif held == "bytes_value":
        value.string_value = _length_of(value.bytes_value)
    elif held in ("array_value", "kvlist_value"):
        value.string_value = f"‹withheld:{value.ByteSize()}›"
    else:
        return 0
    return 1
