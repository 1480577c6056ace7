"""Shapes: byte sequences one of which every match of a rule contains."""

from __future__ import annotations

Shape = tuple[frozenset[int], ...]  # for each position, the bytes that may stand there


def shape(*parts: bytes | frozenset[int]) -> Shape:
    """Join literal bytes and sets of bytes into a shape."""
    positions: list[frozenset[int]] = []
    for part in parts:
        if isinstance(part, frozenset):
            positions.append(part)
        else:
            positions.extend(frozenset((byte,)) for byte in part)
    return tuple(positions)


def any_case(word: bytes) -> Shape:
    return tuple(frozenset((*bytes((b,)).lower(), *bytes((b,)).upper())) for b in word)


def literals(*words: bytes) -> tuple[Shape, ...]:
    return tuple(shape(word) for word in words)
