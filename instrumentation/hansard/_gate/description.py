"""A call in a person's words, as its tool describes it.

It may be short. Whatever it leaves out, the store adds and shows, every argument as a field of its
own: no description can hide one. One that fails says so, and all arguments are listed.
"""

from __future__ import annotations

import copy
import string
import unicodedata
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, Final, TypeAlias

from hansard._gate.flow import Flow, Step
from hansard.errors import MustAwait
from hansard_compiler.canonical import canonical_json

Describe: TypeAlias = str | Callable[..., str | Awaitable[str]] | None

_UNSEEN: Final = frozenset({"Cc", "Cf", "Zl", "Zp", "Cs", "Co", "Cn"})


def description_of(tool: str, describe: Describe, arguments: Mapping[str, Any]) -> Flow[str | None]:
    """Return what the tool says of a call, None where it says nothing; a function is awaited.

    Raises nothing but MustAwait.
    """
    if describe is None:
        return None
    try:
        if isinstance(describe, str):
            text = _filled(describe, arguments)
        else:
            given = copy.deepcopy(dict(arguments))
            text = yield Step(partial(describe, **given))
        if not isinstance(text, str) or not text.strip():
            raise TypeError("a description is a text")
    except MustAwait:
        raise
    except Exception as error:  # of the program's own function, or of a template that does not fit
        kind = type(error).__name__
        return f"{tool}: its description failed ({kind}), so every argument is listed"
    return text


def visible(value: Any) -> str:
    """Return a value as text in which nothing is invisible or turns what stands beside it."""
    return "".join(
        f"‹U+{ord(one):04X}›" if unicodedata.category(one) in _UNSEEN else one
        for one in _text(value)
    )


def _filled(template: str, arguments: Mapping[str, Any]) -> str:
    """Fill names into a template: `{name}` alone, no attributes, indexes or formats."""
    made = []
    for literal, name, form, conversion in string.Formatter().parse(template):
        made.append(literal)
        if name is not None:
            if name not in arguments or form or conversion:
                raise ValueError(f"there is no argument {name!r}")
            made.append(_text(arguments[name]))
    return "".join(made)


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return canonical_json(value)  # as the store shows it
