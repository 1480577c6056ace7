"""Two requests as they went over the wire: byte for byte, and by path where both are JSON."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from hansard_compiler.canonical import ref_of
from hansard_compiler.diff.byte_diff import byte_diff
from hansard_compiler.diff.json_paths import JsonDiff, json_diff
from hansard_compiler.diff.sequences import common_start


@dataclass(frozen=True, slots=True)
class RequestDiff:
    """Two requests; sizes in bytes, digests `sha256:<hex>`. None for a side that is not here."""

    is_equal: bool
    left_size: int | None
    right_size: int | None
    left_ref: str | None
    right_ref: str | None
    first_difference: int | None  # offset of the first byte that differs; None: there is none
    json: JsonDiff | None  # None where a side is no JSON, or not here
    unified: str | None = None  # the bytes, as a unified diff; None where `json` is
    is_unified_truncated: bool = False


def request_diff(left: bytes | None, right: bytes | None) -> RequestDiff:
    """Compare two requests; two that are both not here are equal."""
    is_equal = left == right
    by_path = None if left is None or right is None else _by_path(left, right)
    text = None
    if by_path is not None and left is not None and right is not None:
        text = byte_diff(left, right)
    return RequestDiff(
        is_equal,
        None if left is None else len(left),
        None if right is None else len(right),
        None if left is None else ref_of(left),
        None if right is None else ref_of(right),
        None if is_equal or left is None or right is None else common_start(left, right),
        by_path,
        None if text is None else text.text,
        text is not None and text.is_cut,
    )


def _by_path(left: bytes, right: bytes) -> JsonDiff | None:
    try:
        one: Any = json.loads(left)
        other: Any = json.loads(right)
    except (ValueError, RecursionError):
        return None
    return json_diff(one, other)
