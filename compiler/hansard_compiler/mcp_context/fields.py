"""Reading the protocol's JSON: what is missing or of another type is named."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hansard_compiler.compile.errors import InvalidInput, Problem
from hansard_compiler.compile.models import item_hash

MOST_ID = 512


def text_at(given: Mapping[str, Any], name: str, what: str) -> str:
    """Return a text that must be there; raises InvalidInput."""
    found = given.get(name) if isinstance(given, Mapping) else None
    if not isinstance(found, str) or not found:
        raise InvalidInput(what, [Problem(name, "a text is expected")])
    return found


def optional_text(given: Mapping[str, Any], name: str) -> str | None:
    """Return a text, None where there is none."""
    found = given.get(name)
    return found if isinstance(found, str) and found else None


def mapping_at(given: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return an object, an empty one where there is none."""
    found = given.get(name)
    return found if isinstance(found, Mapping) else {}


def item_id(server: str, place: str) -> str:
    """Return the id of what a server has at a place; a long one ends in its hash."""
    found = f"mcp:{server}:{place}"
    if len(found) <= MOST_ID:
        return found
    return f"{found[: MOST_ID - 17]}~{item_hash('other', place)[7:23]}"
