"""Values of a program as JSON text, in bounded time and memory.

Nothing here raises, and nothing here changes what it looks at: iterators are named and not read,
properties are not called, containers are copied up to a bound. What JSON has no form for is shown
by its type and repr. The text is made at once, so what happens to an object later does not matter.
"""

from __future__ import annotations

import base64
import dataclasses
import datetime
import decimal
import enum
import functools
import inspect
import json
import math
import pathlib
import sys
import types
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Final

MAX_VALUES: Final = 100_000  # in one captured value; walking them takes about 0.1 s
MAX_DEPTH: Final = 24
MAX_REPR_CHARS: Final = 1_000
_MAX_BASE64_BYTES: Final = 3_072
_MAX_INT_BITS: Final = 4_096  # Python refuses to write integers of more than 4,300 digits

_ASCII_ENCODER: Final = json.JSONEncoder(allow_nan=False, separators=(",", ":"))

CIRCULAR: Final = "‹circular›"
TOO_DEEP: Final = f"‹deeper than {MAX_DEPTH} levels›"

_LISTS: Final = (list, tuple, set, frozenset, deque)
_SPELLED: Final = (
    *(decimal.Decimal, uuid.UUID, pathlib.PurePath, datetime.timedelta),
    *(complex, range, types.SimpleNamespace),
)
_DATED: Final = (datetime.date, datetime.time)  # a datetime is a date
_THERE: Final = frozenset({str, int, float, bool, dict, list, tuple, bytes, type(None)})
_NAMED: Final = (type, types.FunctionType, types.BuiltinFunctionType, types.MethodType)


def to_json(value: Any, *, max_bytes: int = 16 << 20) -> str:
    """Return JSON text that shows a value. Never raises; never longer than about `max_bytes`."""
    if type(value) is dict and _is_plain(value, max_bytes):
        return dumps(value)
    return dumps(_Walk(max_bytes).plain(value, 0))


def _is_plain(value: dict[Any, Any], max_bytes: int) -> bool:
    """Whether a walk would make a copy of it: texts by name, as most arguments are."""
    left = max_bytes
    for key, item in list(value.items()):
        if type(key) is not str or type(item) is not str:
            return False
        left -= len(key) + len(item)
    return left > 0 and len(value) < MAX_VALUES


def dumps(plain: Any) -> str:
    """Return JSON text of plain data, fit for UTF-8: lone surrogates are escaped."""
    try:
        return encoder()(plain).decode()
    except Exception:
        return _ASCII_ENCODER.encode(plain)


@functools.cache
def encoder() -> Callable[[Any], bytes]:
    """Return an encoder that takes a fifth of the time of the standard library's.

    `init()` calls it too, before threads do: a process that is forked while a thread imports leaves
    the child with a lock that is never released.
    """
    from pydantic_core import to_json as encode

    return encode


def safe_str(value: Any) -> str:
    """Return a value as text; its repr where that fails."""
    try:
        return str.__str__(value if type(value) is str else str(value))
    except KeyboardInterrupt:
        raise
    except BaseException:
        return safe_repr(value)


def safe_repr(value: Any) -> str:
    """Return the repr, cut; of a repr that fails, the error."""
    try:
        text = str.__str__(repr(value))
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return f"‹repr raised {type(error).__name__}›"
    if len(text) > MAX_REPR_CHARS:
        return f"{text[:MAX_REPR_CHARS]}…"
    return text


def type_name(kind: type) -> str:
    """Return a class's full name: `decimal.Decimal`, `str`."""
    # Past the metaclass, which may be hostile too.
    try:
        module, name = (type.__getattribute__(kind, n) for n in ("__module__", "__qualname__"))
    except Exception:
        return "type"
    return str(name) if module == "builtins" else f"{module}.{name}"


def is_pending(value: object) -> bool:
    """Whether a value is still to come: an awaitable, or a future. Never raises."""
    if type(value) in _THERE:
        return False
    try:
        return inspect.isawaitable(value) or is_future(value)
    except Exception:  # a class that answers no question about itself
        return False


def is_future(value: object) -> bool:
    """Whether a value is a future of asyncio or of a pool; what is not imported has made none."""
    for name in ("asyncio.futures", "concurrent.futures"):
        module = sys.modules.get(name)
        if module is not None and issubclass(type(value), module.Future):
            return True
    return False


def _shown(value: Any, *, note: str = "") -> dict[str, str]:
    shown = {"$type": type_name(type(value)), "$repr": safe_repr(value)}
    return shown | {"$note": note} if note else shown


class _Walk:
    """Makes plain data of a value, within a budget of values and characters."""

    __slots__ = ("_chars_left", "_on_path", "_values_left")

    def __init__(self, max_bytes: int) -> None:
        self._chars_left = max_bytes
        self._values_left = MAX_VALUES
        self._on_path: set[int] = set()

    def plain(self, value: Any, depth: int) -> Any:
        kind = type(value)
        self._values_left -= 1
        if value is None or kind is bool:
            return value
        if kind is str:
            return self._text(value)
        if kind is int:
            return _whole(value)
        if kind is float:
            return value if math.isfinite(value) else str(value)
        if depth >= MAX_DEPTH:
            return TOO_DEEP
        if id(value) in self._on_path:
            return CIRCULAR
        self._on_path.add(id(value))
        try:
            return self._container(value, kind, depth + 1)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # a hostile class may raise anything from anywhere
            return _shown(value, note=f"not captured: {type(error).__name__}")
        finally:
            self._on_path.discard(id(value))

    def _container(self, value: Any, kind: type, depth: int) -> Any:
        # `issubclass` of the type and never `isinstance`, which calls the object for its class.
        if issubclass(kind, dict):
            return self._mapping(dict.items(value), depth)
        if kind in (list, tuple):
            return self._sequence(value, len(value), depth)
        return self._rare(value, kind, depth)

    def _rare(self, value: Any, kind: type, depth: int) -> Any:
        if issubclass(kind, enum.Enum):
            return self.plain(value._value_, depth)
        if issubclass(kind, str):
            return self._text(str.__str__(value))
        if issubclass(kind, int):
            return _whole(int.__index__(value))
        if issubclass(kind, float):
            return self.plain(float.__float__(value), depth)
        if issubclass(kind, tuple) and _fields_of_namedtuple(kind):
            names = _fields_of_namedtuple(kind)
            return self._mapping(zip(names, tuple.__iter__(value), strict=False), depth)
        for base in _LISTS:
            if issubclass(kind, base):
                return self._sequence(base.__iter__(value), base.__len__(value), depth)
        if issubclass(kind, bytes | bytearray | memoryview):
            return self._bytes(value)
        fields = _fields_of(value, kind)
        if fields is not None:
            return self._mapping(fields, depth)
        return self._named_or_shown(value, kind, depth)

    def _named_or_shown(self, value: Any, kind: type, depth: int) -> Any:
        if kind is types.MappingProxyType:
            return self._mapping(value.items(), depth)
        if issubclass(kind, _DATED):
            return value.isoformat()
        if issubclass(kind, _NAMED):
            return {"$type": type_name(kind), "$repr": self._text(_name_of(value))}
        if issubclass(kind, BaseException):
            return {"$type": type_name(kind), "$repr": self._text(safe_repr(value))}
        if kind in _SPELLED or issubclass(kind, pathlib.PurePath):
            return self._text(str(value))
        self._chars_left -= MAX_REPR_CHARS
        if is_pending(value):
            return _shown(value, note="not awaited: no result of anything")
        return _shown(value) if self._chars_left > 0 else f"‹{type_name(kind)}, not shown›"

    def _text(self, text: str) -> str:
        left = max(self._chars_left, 0)
        self._chars_left -= len(text)
        if len(text) <= left:
            return text
        return f"{text[:left]}‹cut: {len(text) - left} characters more›"

    def _bytes(self, value: Any) -> Any:
        count = value.nbytes if type(value) is memoryview else len(value)
        if count > _MAX_BASE64_BYTES or count > self._chars_left:
            return {"$type": type_name(type(value)), "$bytes": count}
        encoded = base64.b64encode(bytes(value)).decode()
        self._chars_left -= len(encoded)
        return {"$type": type_name(type(value)), "$bytes": count, "$base64": encoded}

    def _sequence(self, items: Iterable[Any], count: int, depth: int) -> list[Any]:
        made = []
        # One C call, so that no other thread changes the container half-way.
        for item in list(islice(items, max(self._values_left, 0))):
            if self._is_spent():
                break
            made.append(self.plain(item, depth))
        if len(made) < count:
            made.append(f"‹cut: {count - len(made)} more›")
        return made

    def _mapping(self, items: Iterable[tuple[Any, Any]], depth: int) -> dict[str, Any]:
        made: dict[str, Any] = {}
        whole = list(islice(items, max(self._values_left, 0) + 1))
        for key, item in whole:
            if self._is_spent():
                made["‹cut›"] = "further entries are left out"
                break
            name = self._key(key)
            made[name] = self.plain(item, depth)
        return made

    def _key(self, key: Any) -> str:
        if type(key) is str:
            return self._text(key)
        if key is None or type(key) in (bool, int, float):
            return json.dumps(key) if type(key) is not int else str(_whole(key))
        if issubclass(type(key), str) and not issubclass(type(key), enum.Enum):
            return self._text(str.__str__(key))
        if issubclass(type(key), enum.Enum):
            return self._text(str(key._value_))
        return self._text(safe_repr(key))

    def _is_spent(self) -> bool:
        return self._values_left <= 0 or self._chars_left <= 0


def attribute_number(number: int) -> int | str:
    """Return an integer as OTLP can send it: one of more than 64 bits as its digits."""
    fits = -(2**63) <= number < 2**63
    return number if fits else str(_whole(int.__index__(number)))


def _whole(number: int) -> int | str:
    bits = int.bit_length(number)
    return number if bits <= _MAX_INT_BITS else f"‹integer of {bits} bits›"


def _name_of(value: Any) -> str:
    try:
        return f"{value.__module__}.{value.__qualname__}"
    except Exception:
        return safe_repr(value)


@functools.lru_cache(maxsize=1024)
def _fields_of_namedtuple(kind: type) -> tuple[str, ...]:
    names = inspect.getattr_static(kind, "_fields", ())
    return names if type(names) is tuple and all(type(name) is str for name in names) else ()


def _fields_of(value: Any, kind: type) -> Iterator[tuple[str, Any]] | None:
    """Return the fields of a dataclass, pydantic model or attrs object that may be shown.

    What its author keeps out of the repr or the dump (`repr=False`, `exclude=True`) is left out.
    Values are read past properties and `__getattr__`.
    """
    names = _field_names(kind)
    return None if names is None else _read_fields(value, names)


def _read_fields(value: Any, names: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    try:
        stored: Mapping[str, Any] = object.__getattribute__(value, "__dict__")
    except AttributeError:
        stored = {}
    for name in names:
        if name in stored:
            yield name, stored[name]
            continue
        slot = inspect.getattr_static(type(value), name, None)
        if type(slot) is types.MemberDescriptorType:
            try:
                yield name, slot.__get__(value)
            except AttributeError:
                continue  # declared and not set
    extra = inspect.getattr_static(type(value), "__pydantic_extra__", None)
    if type(extra) is types.MemberDescriptorType:
        yield from (extra.__get__(value) or {}).items()


@functools.lru_cache(maxsize=1024)
def _field_names(kind: type) -> tuple[str, ...] | None:
    readers: tuple[tuple[str, Callable[[Any], tuple[str, ...]]], ...] = (
        ("__pydantic_fields__", _pydantic_names),
        ("__dataclass_fields__", _dataclass_names),
        ("__attrs_attrs__", _attrs_names),
    )
    for attribute, names_in in readers:
        declared = inspect.getattr_static(kind, attribute, None)
        if declared is not None:
            try:
                return names_in(declared)
            except Exception:
                return None  # something else under this name
    return None


def _pydantic_names(declared: Any) -> tuple[str, ...]:
    return tuple(n for n, field in declared.items() if field.repr and field.exclude is not True)


def _dataclass_names(declared: Any) -> tuple[str, ...]:
    fields = [field for field in declared.values() if isinstance(field, dataclasses.Field)]
    return tuple(field.name for field in fields if field.repr and _is_instance_field(field))


def _is_instance_field(field: dataclasses.Field[Any]) -> bool:
    kind = getattr(field, "_field_type", None)
    return getattr(kind, "name", "_FIELD") == "_FIELD"  # no ClassVar, no InitVar


def _attrs_names(declared: Any) -> tuple[str, ...]:
    return tuple(field.name for field in declared if field.repr)
