"""The scalars of OTLP/JSON: what each protobuf field type may look like, and how it is read.

More is accepted than proto3 JSON asks for, as other receivers do: numbers as strings everywhere,
enums by name. A reader returns None for what it cannot read; it never raises.
"""

from __future__ import annotations

import binascii
import re
from base64 import b64decode
from collections.abc import Callable
from math import inf, isfinite
from typing import Any

from google.protobuf.descriptor import FieldDescriptor

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
