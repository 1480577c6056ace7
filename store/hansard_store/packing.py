"""Bytes at rest: zstd level 1 above a size where it pays.

One leading byte tells the codec: 0 = as it is, 1 = zstd. Measured in
reference/ingest-measurements.md §1: level 1 costs less than the pages it saves.
"""

from __future__ import annotations

import threading

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
    try:
        compressor = _local.compressor
    except AttributeError:
        compressor = _local.compressor = zstandard.ZstdCompressor(level=1, write_checksum=False)
    packed: bytes = compressor.compress(data)
    return _ZSTD + packed if len(packed) < len(data) else _RAW + data


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
        data: bytes = decompressor.decompress(body)
    except zstandard.ZstdError as error:
        raise StoreCorruptError(f"a stored value cannot be decompressed: {error}") from error
    return data
