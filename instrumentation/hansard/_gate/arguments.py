"""The arguments of a gated call as plain data: the same value is shown, hashed and run.

An approver decides on JSON, so a gated tool takes what JSON can represent. The arguments are copied
when the call begins: later changes of the program's objects have no effect.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from hansard.errors import InvalidArguments

_MAX_DEPTH: Final = 24
_MAX_VALUES: Final = 100_000
_MAX_INT_BITS: Final = 4_096

Json = dict[str, Any]
_EMPTY: Final = inspect.Parameter.empty


@dataclass(frozen=True, slots=True)
class Shape:
    """The parameters of a tool, without the object or class of a method."""

    tool: str
    parameters: tuple[inspect.Parameter, ...]
    signature: inspect.Signature

    @classmethod
    def of(cls, tool: str, function: Callable[..., Any], *, skipped: int) -> Shape:
        """Return a function's shape; `skipped` parameters at its beginning are the receiver."""
        parameters = tuple(inspect.signature(function).parameters.values())[skipped:]
        return cls(tool, parameters, inspect.Signature(parameters))

    def bound(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Json:
        """Return arguments by name, defaults included. Raises InvalidArguments."""
        try:
            values = self.signature.bind(*args, **kwargs).arguments
        except TypeError as error:
            raise InvalidArguments(self.tool, f"tool {self.tool!r}: {error}") from None
        named: Json = {}
        for one in self.parameters:
            if one.kind is one.VAR_KEYWORD:
                named |= self._further(one.name, values.get(one.name, {}), named)
            elif one.name in values:
                named[one.name] = self._plain(one.name, values[one.name])
            elif one.default is not _EMPTY and _is_plain(one.default):
                named[one.name] = self._plain(one.name, one.default)
        return named

    def split(self, named: Mapping[str, Any]) -> tuple[list[Any], Json]:
        """Return the arguments as the function takes them. Raises InvalidArguments."""
        rest = dict(named)
        args: list[Any] = []
        kwargs: Json = {}
        is_positional = True
        for one in self.parameters:
            if one.kind is one.VAR_POSITIONAL:
                more = rest.pop(one.name, [])
                if not isinstance(more, list) or (more and not is_positional):
                    raise InvalidArguments(
                        self.tool, f"{one.name!r} of {self.tool!r} must be a list"
                    )
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
            raise InvalidArguments(self.tool, f"tool {self.tool!r} takes no argument {names}")
        return args, kwargs

    def check(self, named: Mapping[str, Any]) -> None:
        """Raise InvalidArguments where the function would not take these arguments."""
        args, kwargs = self.split(named)
        self.bound(tuple(args), kwargs)

    def from_model(self, arguments: object) -> Json:
        """Return the arguments of a model by name, checked against the signature."""
        if not isinstance(arguments, Mapping) or not all(isinstance(key, str) for key in arguments):
            raise InvalidArguments(self.tool, f"the arguments of {self.tool!r} must be an object")
        args, kwargs = self.split(
            {key: self._plain(key, value) for key, value in arguments.items()}
        )
        return self.bound(tuple(args), kwargs)

    def _further(self, name: str, more: Mapping[str, Any], named: Json) -> Json:
        doubled = named.keys() & more.keys()
        if doubled:
            names = ", ".join(sorted(doubled))
            raise InvalidArguments(self.tool, f"{names} of {self.tool!r} was given twice")
        return {key: self._plain(f"{name}.{key}", value) for key, value in more.items()}

    def _plain(self, name: str, value: Any) -> Any:
        try:
            return plain_copy(value)
        except ValueError as error:
            message = f"argument {name!r} of {self.tool!r} cannot be shown to an approver: {error}"
            raise InvalidArguments(self.tool, message) from None


def plain_copy(value: Any) -> Any:
    """Return a copy of JSON's types alone; raises ValueError for what JSON cannot represent."""
    return _Copy().of(value, 0)


def _is_plain(value: Any) -> bool:
    try:
        plain_copy(value)
    except ValueError:
        return False  # a default such as a client: no caller passed it
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
        wrong = {float: "it is not a finite number", int: "it is a number of over 4,096 bits"}
        raise ValueError(wrong.get(kind, f"JSON has no form for {kind.__qualname__}"))


def _text(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("it holds half a character (a lone surrogate)") from None
    return text
