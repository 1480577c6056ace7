"""The arguments of a gated call as plain data: what is shown, hashed and run are one and the same.

An approver decides on JSON, so a gated tool takes what JSON can say. The copy is made when the call
comes in: what the program changes in its objects afterwards changes nothing here.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from hansard.errors import BadArguments

_MAX_DEPTH: Final = 24
_MAX_VALUES: Final = 100_000
_MAX_INT_BITS: Final = 4_096

Json = dict[str, Any]
_EMPTY: Final = inspect.Parameter.empty


@dataclass(frozen=True, slots=True)
class Shape:
    """What a tool takes, without the object or class that a method belongs to."""

    tool: str
    parameters: tuple[inspect.Parameter, ...]
    signature: inspect.Signature

    @classmethod
    def of(cls, tool: str, function: Callable[..., Any], *, skipped: int) -> Shape:
        """Return a function's shape; `skipped` parameters at its beginning are the receiver."""
        parameters = tuple(inspect.signature(function).parameters.values())[skipped:]
        return cls(tool, parameters, inspect.Signature(parameters))

    def bound(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Json:
        """Return arguments by name, defaults included. Raises BadArguments."""
        try:
            given = self.signature.bind(*args, **kwargs).arguments
        except TypeError as error:
            raise BadArguments(self.tool, f"tool {self.tool!r}: {error}") from None
        named: Json = {}
        for one in self.parameters:
            if one.kind is one.VAR_KEYWORD:
                named |= self._further(one.name, given.get(one.name, {}), named)
            elif one.name in given:
                named[one.name] = self._plain(one.name, given[one.name])
            elif one.default is not _EMPTY and _is_plain(one.default):
                named[one.name] = self._plain(one.name, one.default)
        return named

    def split(self, named: Mapping[str, Any]) -> tuple[list[Any], Json]:
        """Return the arguments as the function takes them. Raises BadArguments."""
        rest = dict(named)
        args: list[Any] = []
        kwargs: Json = {}
        is_positional = True
        for one in self.parameters:
            if one.kind is one.VAR_POSITIONAL:
                more = rest.pop(one.name, [])
                if not isinstance(more, list) or (more and not is_positional):
                    raise BadArguments(self.tool, f"{one.name!r} of {self.tool!r} must be a list")
                args += more
            elif one.kind is one.VAR_KEYWORD:
                kwargs |= rest
                rest = {}
            elif one.name not in rest:
                is_positional = False
            elif one.kind is one.POSITIONAL_ONLY or (
                one.kind is one.POSITIONAL_OR_KEYWORD and is_positional
            ):
                args.append(rest.pop(one.name))
            else:
                kwargs[one.name] = rest.pop(one.name)
        if rest:
            names = ", ".join(sorted(rest))
            raise BadArguments(self.tool, f"tool {self.tool!r} takes no argument {names}")
        return args, kwargs

    def check(self, named: Mapping[str, Any]) -> None:
        """Raise BadArguments where the function would not take these arguments."""
        args, kwargs = self.split(named)
        self.bound(tuple(args), kwargs)

    def from_model(self, given: object) -> Json:
        """Return what a model gave, by name and checked against the signature."""
        if not isinstance(given, Mapping) or not all(isinstance(key, str) for key in given):
            raise BadArguments(self.tool, f"the arguments of {self.tool!r} must be an object")
        args, kwargs = self.split({key: self._plain(key, value) for key, value in given.items()})
        return self.bound(tuple(args), kwargs)

    def _further(self, name: str, given: Mapping[str, Any], named: Json) -> Json:
        doubled = named.keys() & given.keys()
        if doubled:
            told = ", ".join(sorted(doubled))
            raise BadArguments(self.tool, f"{told} of {self.tool!r} was given twice")
        return {key: self._plain(f"{name}.{key}", value) for key, value in given.items()}

    def _plain(self, name: str, value: Any) -> Any:
        try:
            return plain_copy(value)
        except ValueError as error:
            told = f"argument {name!r} of {self.tool!r} cannot be shown to an approver: {error}"
            raise BadArguments(self.tool, told) from None


def plain_copy(value: Any) -> Any:
    """Return a copy made of JSON's types alone; raises ValueError for what JSON cannot say."""
    return _Copy().of(value, 0)


def _is_plain(value: Any) -> bool:
    try:
        plain_copy(value)
    except ValueError:
        return False  # a default such as a client: nobody gave it, and nobody has to judge it
    return True


class _Copy:
    __slots__ = ("_left",)

    def __init__(self) -> None:
        self._left = _MAX_VALUES

    def of(self, value: Any, depth: int) -> Any:
        self._left -= 1
        if self._left < 0 or depth > _MAX_DEPTH:
            raise ValueError("it is too large or too deep")
        kind = type(value)
        if value is None or kind is bool:
            return value
        if kind is str:
            return _text(value)
        if kind is int and value.bit_length() <= _MAX_INT_BITS:
            return value
        if kind is float and math.isfinite(value):
            return value
        if kind in (list, tuple):
            return [self.of(item, depth + 1) for item in value]
        if kind is dict and all(type(key) is str for key in value):
            return {_text(key): self.of(item, depth + 1) for key, item in value.items()}
        raise ValueError(_what_is_wrong(kind))


def _text(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("it holds half a character (a lone surrogate)") from None
    return text


def _what_is_wrong(kind: type) -> str:
    told = {float: "it is not a finite number", int: "it is a number of over 4,096 bits"}
    return told.get(kind, f"JSON has no form for {kind.__qualname__}")
