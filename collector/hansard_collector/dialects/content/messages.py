"""Messages already built: in a conversation each turn sends all earlier ones again.

The raw text of an element, or its flat attributes, leads to the messages built from it before, so
that a resent message costs one look-up. Bounded in bytes, not thread-safe: it belongs to the
pipeline's one thread. What it holds is shared and must not be changed.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar

_Built = TypeVar("_Built")

_DEFAULT_BYTES = 24 * 2**20
_OVERHEAD_BYTES = 600  # a message with one part, its key and its place in the dict
_COPIES = 2  # the raw text and the text inside what was built from it


class MessageCache:
    """A cache of two generations: what was not read while one filled up is forgotten."""

    def __init__(self, max_bytes: int = _DEFAULT_BYTES) -> None:
        self._generation_bytes = max_bytes // 2
        self._young: dict[Hashable, Any] = {}
        self._old: dict[Hashable, Any] = {}
        self._young_bytes = 0

    def find(self, key: Hashable) -> Any:
        """Return what is stored under a key, or None."""
        built = self._young.get(key)
        if built is None and (built := self._old.pop(key, None)) is not None:
            self.keep(key, built, size_bytes=_key_bytes(key))
        return built

    def keep(self, key: Hashable, built: Any, *, size_bytes: int) -> None:
        """Keep what was built from `size_bytes` of text; the oldest goes when it is too much."""
        self._young_bytes += size_bytes * _COPIES + _OVERHEAD_BYTES
        if self._young_bytes > self._generation_bytes:
            self._old, self._young = self._young, {}
            self._young_bytes = size_bytes * _COPIES + _OVERHEAD_BYTES
        if self._young_bytes <= self._generation_bytes:
            self._young[key] = built

    def built(self, kind: str, source: str, build: Callable[[str], _Built]) -> _Built:
        """Return what `build` makes of a text, from the cache where it was made before.

        `kind` separates what different builders make of one text.
        """
        key = (kind, source)
        cached: _Built | None = self.find(key)
        if cached is None:
            cached = build(source)
            self.keep(key, cached, size_bytes=_key_bytes(key))
        return cached

    def __len__(self) -> int:
        return len(self._young) + len(self._old)


def _key_bytes(key: Hashable) -> int:
    if isinstance(key, str):
        return len(key) if key.isascii() else 2 * len(key)
    if isinstance(key, tuple):
        return sum(_key_bytes(part) for part in key)
    return 16
