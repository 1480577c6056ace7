"""JSON that can be read in one way only, of bodies and of what people write."""

from __future__ import annotations

import json
import math
from typing import Any, Final, NoReturn

from hansard_web.sidecar.errors import InvalidBody

MAX_DEPTH: Final = 100


def parse_json(data: bytes) -> Any:
    """Return what JSON says.

    Raises InvalidBody where it could be read in two ways, or not at all.
    """
    try:
        value = json.loads(data, parse_constant=_no_number, object_pairs_hook=_unique)
    except RecursionError:
        raise InvalidBody(f"the body is nested deeper than {MAX_DEPTH} levels") from None
    except UnicodeDecodeError:
        raise InvalidBody("the body is not UTF-8") from None
    except ValueError as error:
        raise InvalidBody(f"the body is not JSON: {_problem_text(error)}") from None
    _check(value)
    return value


def _problem_text(error: ValueError) -> str:
    # The decoder's own sentence tells place and problem; others may repeat the input.
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg} (line {error.lineno}, column {error.colno})"
    return "a number with more digits than can be read"


def _no_number(name: str) -> NoReturn:
    raise InvalidBody(f"{name} is no JSON")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise InvalidBody("a key stands twice in one object")
    return made


def _check(value: Any) -> None:
    """Refuse what later stages could not write: endless nesting, halves of characters, infinity."""
    level, depth = [value], 0
    while level:
        depth += 1
        if depth > MAX_DEPTH:
            raise InvalidBody(f"the body is nested deeper than {MAX_DEPTH} levels")
        below: list[Any] = []
        for one in level:
            if isinstance(one, dict):
                below += one.values()
                below += one
            elif isinstance(one, list):
                below += one
            elif isinstance(one, str) and not one.isascii():
                _check_text(one)
            elif isinstance(one, float) and math.isinf(one):
                raise InvalidBody(
                    "a number is too large to be distinguished from others"
                )  # 1e999 and 1e1000
        level = below


def _check_text(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidBody("a text holds half of a surrogate pair, which is no Unicode") from None
