"""A request rendered again, written as it was recorded where it says the same.

A stored compile is canonical JSON: its keys are sorted. Those of the request that was sent stood in
the order of whoever wrote it, and a provider's prompt cache knows the bytes, not what they mean.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hansard_compiler.canonical import canonical_bytes, canonical_json

_PIECES = 3  # levels written one by one: a large request holds no other thread up


def in_recorded_order(rendered: Any, recorded: Any) -> Any:
    """Return the same JSON value with the keys of each object in their recorded order.

    New keys come last. An element of a list is held against the equal one of the record, at its
    place or elsewhere, and where there is none against whatever stood at its place.
    """
    if isinstance(rendered, Mapping) and isinstance(recorded, Mapping):
        names = [*(name for name in recorded if name in rendered)]
        names += [name for name in rendered if name not in recorded]
        return {name: in_recorded_order(rendered[name], recorded.get(name)) for name in names}
    if _is_list(rendered) and _is_list(recorded):
        elsewhere = {canonical_json(one): one for one in recorded}
        return [
            in_recorded_order(one, _counterpart(one, number, recorded, elsewhere))
            for number, one in enumerate(rendered)
        ]
    return rendered


def _counterpart(
    one: Any, number: int, recorded: Sequence[Any], elsewhere: Mapping[str, Any]
) -> Any:
    there = recorded[number] if number < len(recorded) else None
    said = canonical_json(one)
    return there if said == canonical_json(there) else elsewhere.get(said, there)


def says_the_same(rendered: Any, recorded: Any) -> bool:
    """Whether two requests are one JSON value, in whatever order its keys are written."""
    return canonical_bytes(rendered, pieces=_PIECES) == canonical_bytes(recorded, pieces=_PIECES)


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)
