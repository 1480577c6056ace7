"""Where an item comes from: what says whose setting it tells of where its text does not.

`The request timeout is 30 seconds.` in `services/gateway/README.md`, and with 60 seconds in
`services/mailer/README.md`, are two settings. So are those of items with other metadata or tags.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, get_args

from hansard_compiler.compile.items import Item
from hansard_compiler.compile.models import MemoryType
from hansard_compiler.conflicts.facts import plain

# Metadata of the compiler's own: they say nothing of a place, or are compared elsewhere.
_OWN: Final = frozenset(
    {"subject", "attribute", "predicate", "value", "risk", "call_id", "response_id"}
    | {"run_id", "step_ids"}
)
# Tags that say how an item is treated, or what sort of memory it is.
_TAGS: Final = frozenset(
    {"soft", "blocking", "resolved", "required", "pinned", "evidence", "approval", "verbatim"}
    | {"profile", "workspace", "changed", "ephemeral", "correction"}
    | set(get_args(MemoryType))
)
_OF_DOCUMENT: Final = frozenset(
    {"title", "document", "file", "filename", "path", "source", "url", "uri", "page", "chunk"}
    | {"author", "publisher", "published", "section", "heading"}
)
_Names = frozenset[tuple[str, str]]
_NAME: Final = re.compile(r"[^\W\d_]{2}")  # times and plain numbers in a text are no names
# What is no part of a document: two of one folder are about one thing.
_WHOLE: Final = frozenset({"memory", "constraint", "policy"})


def are_of_one_place(a: Item, b: Item, *, is_correction: bool) -> bool:
    """Say whether nothing that stands beside two texts tells them apart.

    A correction is written in another document than what it corrects: of one folder is enough.
    """
    are_parts = not is_correction and not _WHOLE & {a.kind, b.kind}
    return _place(a, are_parts) == _place(b, are_parts)


def are_labelled_alike(a: Item, b: Item) -> bool:
    """Say whether metadata, tags and scope of two items are the same, wherever they come from.

    What names a document (its title, author or address) says where a fact stands, not of what.
    """
    return a.scope == b.scope and _beside_fact(a) == _beside_fact(b)


def _beside_fact(item: Item) -> tuple[object, ...]:
    source, own, tags = _labels(item)
    left = ({pair for pair in one if pair[0] not in _OF_DOCUMENT} for one in (source, own))
    return (*left, tags)


def _place(item: Item, is_part: bool) -> tuple[object, ...]:
    source = item.source
    if source is None:
        return "", "", _labels(item)
    uri = "" if source.source_type == "memory" else (source.uri or "").partition("#")[0]
    where = uri if is_part else uri.rpartition("/")[0]
    return where, plain(source.title or ""), _labels(item)


def _labels(item: Item) -> tuple[_Names, _Names, frozenset[str]]:
    tags = frozenset(tag for tag in item.tags if tag not in _TAGS and ":" not in tag)
    beside = item.source.metadata if item.source is not None else {}
    return _names(beside), _names(item.metadata), tags


def _names(metadata: Mapping[str, Any]) -> frozenset[tuple[str, str]]:
    """Return what metadata name: texts that hold a word, and whole numbers."""
    return frozenset(
        (name, plain(value) if isinstance(value, str) else str(value))
        for name, value in metadata.items()
        if name not in _OWN
        and ((isinstance(value, str) and _NAME.search(value)) or type(value) is int)
    )
