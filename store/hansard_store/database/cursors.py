"""Cursors of lists: opaque to clients, checked when they come back."""

from __future__ import annotations

import base64
import binascii
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from hansard_store.errors import InvalidCursorError

_CHECK = struct.Struct(">I")


_T_co = TypeVar("_T_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Page(Generic[_T_co]):
    """Some of a list, in its order, and the cursor of what comes after; None: nothing does."""

    items: Sequence[_T_co]
    next_cursor: str | None


def encode_cursor(kind: str, *position: int) -> str:
    """Return a URL-safe text that names a place in one kind of list."""
    numbers = struct.pack(f">{len(position)}q", *position)
    check = _CHECK.pack(zlib.crc32(kind.encode() + numbers))
    return base64.urlsafe_b64encode(check + numbers).rstrip(b"=").decode()


def decode_cursor(kind: str, text: str, *, count: int, name: str = "cursor") -> tuple[int, ...]:
    """Return the `count` numbers of a cursor; raises InvalidCursorError for any other text.

    The check is against accidents, such as a cursor of another list or sort; a forged one only
    begins a page at an odd place.
    """
    try:
        data = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError) as error:
        raise InvalidCursorError(name) from error
    check, numbers = data[: _CHECK.size], data[_CHECK.size :]
    if len(numbers) != 8 * count or check != _CHECK.pack(zlib.crc32(kind.encode() + numbers)):
        raise InvalidCursorError(name)
    return struct.unpack(f">{count}q", numbers)
