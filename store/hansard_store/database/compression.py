"""Bytes at rest: zstd level 1 above a size where it pays.

One leading byte tells the codec: 0 = as it is, 1 = zstd. Measured in
reference/ingest-measurements.md §1: level 1 costs less than the pages it saves.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

import zstandard

from hansard_store.errors import StoreCorruptError

_RAW, _ZSTD = b"\0", b"\1"
_WORTH_PACKING_BYTES = 160
# A compressor may be used by one thread at a time; each keeps its own.
_local = threading.local()


def pack(data: bytes) -> bytes:
    """Return data in packed form, compressed when that makes it smaller."""
    if len(data) < _WORTH_PACKING_BYTES:
        return _RAW + data
    return _smaller(_compressor().compress(data), data)


def pack_all(values: Sequence[bytes]) -> list[bytes]:
    """Return each value as `pack` does, giving Python's lock away once and not once a value."""
    large: list[bytes | bytearray | memoryview[int]] = [
        data for data in values if len(data) >= _WORTH_PACKING_BYTES
    ]
    if not large:
        return [_RAW + data for data in values]
    segments = _compressor().multi_compress_to_buffer(large, threads=1)
    packed = (segments[at].tobytes() for at in range(len(large)))
    return [
        _RAW + data if len(data) < _WORTH_PACKING_BYTES else _smaller(next(packed), data)
        for data in values
    ]


def _smaller(packed: bytes, data: bytes) -> bytes:
    return _ZSTD + packed if len(packed) < len(data) else _RAW + data


def _compressor() -> zstandard.ZstdCompressor:
    try:
        compressor: zstandard.ZstdCompressor = _local.compressor
    except AttributeError:
        compressor = _local.compressor = zstandard.ZstdCompressor(level=1, write_checksum=False)
    return compressor


def unpack(packed: bytes) -> bytes:
    """Return the data that was packed; raises StoreCorruptError on anything else."""
    codec, body = packed[:1], packed[1:]
    if codec == _RAW:
        return body
    if codec != _ZSTD:
        raise StoreCorruptError(f"a stored value has unknown codec {codec!r}")
    try:
        decompressor = _local.decompressor
    except AttributeError:
        decompressor = _local.decompressor = zstandard.ZstdDecompressor()
    try:
        # One frame and nothing behind it: what nobody reads could hold anything.
        data: bytes = decompressor.decompress(body, allow_extra_data=False)
    except zstandard.ZstdError as error:
        raise StoreCorruptError(f"a stored value cannot be decompressed: {error}") from error
    return data
