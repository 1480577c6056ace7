"""OTLP/JSON, both ways: proto3 JSON with hex ids and integer enums (opentelemetry-proto 1.11).

protobuf's own json_format cannot be used to read it: it takes the hex ids for base64 without an
error, honours snake_case keys, and fails on unknown fields. Requests are turned into nested
dicts of protobuf's field names, from which upb builds the whole message in one call.
"""

from __future__ import annotations

import binascii
import json
import re
from base64 import b64decode, b64encode
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from math import inf, isfinite, isnan
from typing import Any

import orjson
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message
from opentelemetry.proto.common.v1.common_pb2 import AnyValue

from hansard_collector.errors import MalformedRequest
from hansard_collector.otlp.signals import CONTRACTS, ExportRequest
from hansard_collector.pipeline.requests import Signal

# The scalars of OTLP/JSON: what each protobuf field type may look like, and how it is read.
#
# More is accepted than proto3 JSON defines, as other receivers do: numbers as strings everywhere,
# enums by name. A reader returns None for what it cannot read; it never raises.

# Spans, logs and exemplars write these in hex; every other `bytes` field is base64.
HEX_FIELDS = frozenset({"trace_id", "span_id", "parent_span_id"})

_INTEGER = re.compile(r"-?[0-9]{1,20}")
_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_TO_STANDARD_BASE64 = str.maketrans("-_", "+/")
_NAMED_DOUBLES = {"NaN": float("nan"), "Infinity": inf, "-Infinity": -inf}

ScalarReader = Callable[[Any], Any]


def scalar_reader(descriptor: FieldDescriptor) -> tuple[ScalarReader, str]:
    """Return the reader of a field that holds no message, and what it expects, in words."""
    match descriptor.cpp_type:
        case FieldDescriptor.CPPTYPE_BOOL:
            return _read_bool, "true or false"
        case FieldDescriptor.CPPTYPE_DOUBLE | FieldDescriptor.CPPTYPE_FLOAT:
            return _read_double, "a number"
        case FieldDescriptor.CPPTYPE_INT32:
            return _integer_reader(-(2**31), 2**31 - 1), "a 32-bit integer"
        case FieldDescriptor.CPPTYPE_UINT32:
            return _integer_reader(0, 2**32 - 1), "an unsigned 32-bit integer"
        case FieldDescriptor.CPPTYPE_INT64:
            return _integer_reader(-(2**63), 2**63 - 1), "a 64-bit integer"
        case FieldDescriptor.CPPTYPE_UINT64:
            return _integer_reader(0, 2**64 - 1), "an unsigned 64-bit integer"
        case FieldDescriptor.CPPTYPE_ENUM:
            return _enum_reader(descriptor), "the number of an enum's value"
    if descriptor.type == FieldDescriptor.TYPE_STRING:
        return _read_string, "a string"
    if descriptor.name in HEX_FIELDS:
        return _read_hex, "an even number of hex digits"
    return _read_base64, "base64"


def _read_string(value: Any) -> str | None:
    return value if type(value) is str else None


def _read_bool(value: Any) -> bool | None:
    return value if type(value) is bool else None


def _read_double(value: Any) -> float | None:
    if type(value) is float:
        return value
    if type(value) is int:
        return float(value)
    if type(value) is not str:
        return None
    return float(value) if _NUMBER.fullmatch(value) else _NAMED_DOUBLES.get(value)


def _integer_reader(lowest: int, highest: int) -> Callable[[Any], int | None]:
    def read_integer(value: Any) -> int | None:
        if type(value) is str and _INTEGER.fullmatch(value):
            value = int(value)
        elif type(value) is float and isfinite(value) and value.is_integer():
            # orjson gives floats for integers past 64 bits: those at a limit were beyond it.
            value = int(value) if lowest < value < highest else None
        return value if type(value) is int and lowest <= value <= highest else None

    return read_integer


def _enum_reader(descriptor: FieldDescriptor) -> Callable[[Any], int | None]:
    """Numbers, as OTLP/JSON demands, and the names that some senders write all the same."""
    numbers = {name: value.number for name, value in descriptor.enum_type.values_by_name.items()}
    read_integer = _integer_reader(-(2**31), 2**31 - 1)

    def read_enum(value: Any) -> int | None:
        number = numbers.get(value) if type(value) is str else None
        return read_integer(value) if number is None else number

    return read_enum


def _read_hex(value: Any) -> bytes | None:
    try:
        return binascii.unhexlify(value) if type(value) is str else None
    except ValueError:
        return None


def _read_base64(value: Any) -> bytes | None:
    if type(value) is not str:
        return None
    text = value.translate(_TO_STANDARD_BASE64).rstrip("=")
    try:
        return b64decode(text + "=" * (-len(text) % 4), validate=True)
    except ValueError:
        return None


# How many messages may lie one in another below the request. protobuf's parser stops there, and
# what is stored is parsed again by it: so 31 maps or 47 arrays in a span attribute.
MAX_DEPTH = 100

_PROFILES_ONLY = frozenset({"key_strindex", "string_value_strindex"})
# An id that is no hex: no id has this length, so the item is refused singly, as any bad id is.
_NOT_AN_ID = b"\xff"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
# A backslash escape: first a sound surrogate pair, then one that has lost its other half.
_ESCAPE = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    r"|(?P<lone>u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)

Note = tuple[str, str]  # key, what is wrong with it


def decode_json(signal: Signal, body: bytes, warnings: list[str]) -> ExportRequest:
    """Return the request that `body` holds; what was left out of it is appended to `warnings`.

    Raises MalformedRequest for what is no JSON, has a list or an object in the wrong place, or
    is nested deeper than MAX_DEPTH. A scalar that cannot be read costs that value alone.
    """
    message_type = CONTRACTS[signal].request
    document = _parse(body)
    reader = _Reader()
    try:
        fields = reader.read_message(_plan(message_type.DESCRIPTOR), document)
    except _WrongShape as wrong:
        raise MalformedRequest(
            f"{wrong.where()} must be {wrong.expected}", field=wrong.where()
        ) from None
    except (_TooDeep, RecursionError):
        raise MalformedRequest(
            f"nested too deep: more than {MAX_DEPTH} messages one in another (31 maps or 47"
            " arrays in a span attribute)"
        ) from None
    if document and not fields:
        (expected,) = (each.json_name for each in message_type.DESCRIPTOR.fields)
        reader.notes[expected, "is missing: nothing of the body was read"] = 1
    warnings.extend(reader.sentences())
    return message_type(**fields)


def encode_json(message: Message) -> dict[str, Any]:
    """Return the OTLP/JSON object of a message, ready for `orjson.dumps`; inverse of decode_json.

    Fields that are not set are left out; a member of a oneof is written even when it is zero.
    """
    encoded = {}
    for descriptor, value in message.ListFields():
        name, encode = _encoder(descriptor)
        encoded[name] = (
            [encode(item) for item in value] if descriptor.is_repeated else encode(value)
        )
    return encoded


# ------------------------------------------------------------------------------- bytes to objects
def _parse(body: bytes) -> Any:
    body = body.removeprefix(_BYTE_ORDER_MARK)
    if not body:
        raise MalformedRequest("the body is empty; an empty OTLP/JSON request is {}")
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        return _parse_leniently(body)


def _parse_leniently(body: bytes) -> Any:
    """Parse what orjson refuses but senders write: lone surrogates, NaN, numbers of any size."""
    try:
        text = body.decode()
    except UnicodeDecodeError as error:
        raise MalformedRequest(
            f"the body is not UTF-8: byte 0x{body[error.start]:02x} at offset {error.start}"
        ) from None
    try:
        return json.loads(_ESCAPE.sub(_mend_escape, text), parse_int=_parse_integer)
    except RecursionError:
        raise MalformedRequest("the JSON is nested too deep to be read") from None
    except json.JSONDecodeError as error:
        raise MalformedRequest(
            f"the body is not JSON: {error.msg} at line {error.lineno} column {error.colno}"
        ) from None


def _mend_escape(escape: re.Match[str]) -> str:
    return "\\ufffd" if escape["lone"] else escape[0]


def _parse_integer(digits: str) -> int | float:
    # Past 20 digits nothing fits 64 bits, and int() refuses texts of 4,300 digits by itself.
    return int(digits) if len(digits) <= 20 else float(digits)


# --------------------------------------------------------------------------- objects to protobuf
class _WrongShape(Exception):
    """A list or an object was expected; `path` grows from the inside out while it is raised."""

    def __init__(self, expected: str) -> None:
        super().__init__(expected)
        self.expected = expected
        self.path: list[str] = []

    def where(self) -> str:
        return "".join(reversed(self.path)).lstrip(".") or "the body"


class _TooDeep(Exception):
    """More messages one in another than protobuf reads back."""


@dataclass(frozen=True, slots=True)
class _Field:
    """How the value of one JSON key is read."""

    name: str  # protobuf's
    is_repeated: bool
    message: Descriptor | None = None
    convert: ScalarReader | None = None  # None where `message` is set
    expected: str = ""
    substitute: bytes | None = None  # stored for a value that cannot be read


@dataclass(frozen=True, slots=True)
class _Plan:
    """How the keys of one message are read."""

    fields: Mapping[str, _Field]  # by JSON name
    camel_names: Mapping[str, str]  # by protobuf's name, where the two differ
    oneofs: Sequence[frozenset[str]]


@dataclass(slots=True)
class _Reader:
    """Reads one document; remembers how deep it is and what it had to leave out."""

    depth: int = -1  # of the request itself: 0
    notes: Counter[Note] = field(default_factory=Counter)

    def read_message(self, plan: _Plan, value: Any) -> dict[str, Any]:
        if type(value) is not dict:
            raise _WrongShape("a JSON object")
        if self.depth >= MAX_DEPTH:
            raise _TooDeep
        self.depth += 1
        fields: dict[str, Any] = {}
        for key, item in value.items():
            if item is None:  # proto3 JSON: as if the key were absent
                continue
            known = plan.fields.get(key)
            if known is None:
                self._note_unknown(plan, key)
                continue
            try:
                read = self._read_field(known, item)
            except _WrongShape as wrong:
                wrong.path.append(f".{key}")
                raise
            if read is not None:
                fields[known.name] = read
            else:
                self.notes[key, f"must be {known.expected}; the value was left out"] += 1
                if known.substitute is not None:
                    fields[known.name] = known.substitute
        self.depth -= 1
        if len(fields) > 1:
            self._note_exclusive(plan, fields)
        return fields

    def _read_field(self, known: _Field, value: Any) -> Any:
        if known.convert is not None:
            return (
                _read_scalars(known.convert, value) if known.is_repeated else known.convert(value)
            )
        assert known.message is not None
        if not known.is_repeated:
            return self.read_message(_plan(known.message), value)
        if type(value) is not list:
            raise _WrongShape("a JSON list")
        if known.message.name == "KeyValue":
            return self._read_attributes(_plan(known.message), value)
        return [
            self._read_item(_plan(known.message), item, index) for index, item in enumerate(value)
        ]

    def _read_attributes(self, plan: _Plan, pairs: list[Any]) -> list[dict[str, Any]]:
        attributes = []
        for index, pair in enumerate(pairs):
            read = _read_plain_attribute(pair) if self.depth < MAX_DEPTH - 1 else None
            attributes.append(read or self._read_item(plan, pair, index))
        return attributes

    def _read_item(self, plan: _Plan, item: Any, index: int) -> dict[str, Any]:
        try:
            return self.read_message(plan, {} if item is None else item)
        except _WrongShape as wrong:
            wrong.path.append(f"[{index}]")
            raise

    def _note_unknown(self, plan: _Plan, key: str) -> None:
        camel = plan.camel_names.get(key)
        if camel:  # the commonest mistake in hand-made requests; other unknown keys are legal
            self.notes[key, f"is unknown: OTLP/JSON calls it {camel}"] += 1

    def _note_exclusive(self, plan: _Plan, fields: dict[str, Any]) -> None:
        for oneof in plan.oneofs:
            both = oneof & fields.keys()
            if len(both) > 1:  # protobuf keeps the one set last
                keys = " and ".join(sorted(plan.camel_names.get(name, name) for name in both))
                self.notes[keys, "exclude each other; the last one was kept"] += 1

    def sentences(self) -> list[str]:
        return [
            f"{key} {problem}" + (f" ({count:,} times)" if count > 1 else "")
            for (key, problem), count in self.notes.items()
        ]


def _read_plain_attribute(pair: Any) -> dict[str, Any] | None:
    """A key with one scalar, as nearly every attribute is; None leaves it to the general way.

    The general way would come to the same result in twice the time.
    """
    if type(pair) is not dict or len(pair) != 2:
        return None
    key, value = pair.get("key"), pair.get("value")
    if type(key) is not str or type(value) is not dict or len(value) != 1:
        return None
    ((kind, scalar),) = value.items()
    known = _ANY_VALUE_FIELDS.get(kind)
    if known is None or known.convert is None:
        return None
    converted = known.convert(scalar)
    return None if converted is None else {"key": key, "value": {known.name: converted}}


def _read_scalars(convert: ScalarReader, values: Any) -> list[Any] | None:
    """One unreadable number costs the list: leaving it out would shift the others."""
    if type(values) is not list:
        raise _WrongShape("a JSON list")
    converted = [convert(value) for value in values]
    return None if None in converted else converted


@cache
def _plan(descriptor: Descriptor) -> _Plan:
    known = [each for each in descriptor.fields if each.name not in _PROFILES_ONLY]
    return _Plan(
        fields={each.json_name: _field(each) for each in known},
        camel_names={each.name: each.json_name for each in known if each.name != each.json_name},
        oneofs=[
            frozenset(each.name for each in oneof.fields)
            for oneof in descriptor.oneofs
            if len(oneof.fields) > 1  # an `optional` field is a oneof of one
        ],
    )


def _field(descriptor: FieldDescriptor) -> _Field:
    if descriptor.message_type is not None:
        return _Field(
            name=descriptor.name,
            is_repeated=descriptor.is_repeated,
            message=descriptor.message_type,
        )
    convert, expected = scalar_reader(descriptor)
    return _Field(
        name=descriptor.name,
        is_repeated=descriptor.is_repeated,
        convert=convert,
        expected=expected,
        substitute=_NOT_AN_ID if descriptor.name in HEX_FIELDS else None,
    )


# --------------------------------------------------------------------------- protobuf to objects
@cache
def _encoder(descriptor: FieldDescriptor) -> tuple[str, Callable[[Any], Any]]:
    return descriptor.json_name, _value_encoder(descriptor)


def _value_encoder(descriptor: FieldDescriptor) -> Callable[[Any], Any]:
    match descriptor.cpp_type:
        case FieldDescriptor.CPPTYPE_MESSAGE:
            return encode_json
        case FieldDescriptor.CPPTYPE_INT64 | FieldDescriptor.CPPTYPE_UINT64:
            return str
        case FieldDescriptor.CPPTYPE_DOUBLE | FieldDescriptor.CPPTYPE_FLOAT:
            return _encode_double
    if descriptor.type == FieldDescriptor.TYPE_BYTES:
        return bytes.hex if descriptor.name in HEX_FIELDS else _encode_base64
    return _as_is


def _encode_double(value: float) -> float | str:
    if isfinite(value):
        return value
    return "NaN" if isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _encode_base64(value: bytes) -> str:
    return b64encode(value).decode()


def _as_is(value: Any) -> Any:
    return value


_ANY_VALUE_FIELDS = _plan(AnyValue.DESCRIPTOR).fields
