"""Packed bytes: one frame of zstd, or the bytes as they are, and nothing that nobody reads."""

from __future__ import annotations

import struct

import pytest

from hansard_store.database.compression import pack, unpack
from hansard_store.errors import StoreCorruptError

_PACKED = pack(b"words " * 200)
_SKIPPED = b"\x50\x2a\x4d\x18" + struct.pack("<I", 3) + b"abc"  # a frame that readers skip


def test_what_was_packed_is_unpacked() -> None:
    assert _PACKED[:1] == b"\1"
    assert unpack(_PACKED) == b"words " * 200


@pytest.mark.parametrize(
    "packed",
    [
        _PACKED + b"x",
        _PACKED + _PACKED[1:],
        _PACKED + _SKIPPED,
        _PACKED[:1] + _SKIPPED + _PACKED[1:],
    ],
)
def test_what_stands_before_or_behind_the_frame_is_refused(packed: bytes) -> None:
    with pytest.raises(StoreCorruptError):
        unpack(packed)
