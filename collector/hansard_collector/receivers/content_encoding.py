"""Content encodings of request bodies, undone with flat memory whatever a body claims to hold."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Protocol

import zstandard

from hansard_collector.errors import MalformedRequest, RequestTooLarge

IDENTITY = "identity"

# Decompressed bytes are counted after every slice, so a slice bounds how far a bomb gets past the
# limit: 1 KiB can stand for 1 MiB of gzip or deflate and for 32 MiB of zstd (four bytes a block
# of 128 KiB).
_SLICE_BYTES = 1024
# Frames larger than their window exist only up to the window the sender declares; memory for it
# is taken at once. 64 MiB allows what a whole body may hold.
_MAX_ZSTD_WINDOW_BYTES = 64 << 20
# Members of 20 bytes, each with a decompressor to set up, would cost minutes. The smallest blocks
# in use (bgzip's, 64 KiB) make a thousand of the largest body.
_MAX_MEMBERS = 10_000


class _Stream(Protocol):
    """What the decompressors of zlib and zstandard have in common."""

    @property
    def eof(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...

    def decompress(self, data: bytes, /) -> bytes: ...


def _zstd_stream() -> _Stream:
    stream: _Stream = zstandard.ZstdDecompressor(
        max_window_size=_MAX_ZSTD_WINDOW_BYTES
    ).decompressobj()
    return stream


_GZIP: Callable[[], _Stream] = partial(zlib.decompressobj, wbits=31)
_ZLIB: Callable[[], _Stream] = partial(zlib.decompressobj, wbits=15)

_STREAMS: Mapping[str, Callable[[], _Stream]] = MappingProxyType(
    {
        "gzip": _GZIP,
        "x-gzip": _GZIP,  # RFC 9110 §8.4.1.3: the same
        "deflate": _ZLIB,  # RFC 9110 §8.4.1.2: zlib's format, whatever the name says
        "zstd": _zstd_stream,
    }
)

SUPPORTED = ("gzip", "deflate", "zstd")  # as senders see it


def is_supported(encoding: str) -> bool:
    """Whether `inflate` knows this lower-case Content-Encoding; "identity" is not compressed."""
    return encoding == IDENTITY or encoding in _STREAMS


def unlimited(_: int) -> None:
    """For a caller whose memory is not shared with other bodies."""


def inflate(
    body: bytes,
    encoding: str,
    *,
    limit_bytes: int,
    hold: Callable[[int], None] = unlimited,
    judge: Callable[[bytes], MalformedRequest | None] = lambda _: None,
) -> bytes:
    """Return what a supported encoding holds: all members or frames, joined.

    Raises RequestTooLarge as soon as more than `limit_bytes` came out, and MalformedRequest for
    a corrupt, cut or empty body. 64 MiB take about 0.1 s, so this belongs into a thread.

    `hold` is called, and may raise, with every number of bytes that are held from then on, for the
    pieces and for the whole that they are joined to. `judge` gets the first bytes that come out; of
    a body that it finds wrong nothing stays in memory, and the rest is only counted.
    """
    if encoding == IDENTITY:
        return body
    if not body:
        raise MalformedRequest(f"the body is empty, which is no {encoding}")
    try:
        return _inflate(
            body,
            _STREAMS[encoding],
            limit_bytes=limit_bytes,
            hold=hold,
            judge=judge,
        )
    except (zlib.error, zstandard.ZstdError) as error:
        raise MalformedRequest(f"the body is not {encoding}, or is damaged: {error}") from None
    except EOFError:
        raise MalformedRequest(f"the {encoding} body ends before its end mark") from None


def _inflate(
    body: bytes,
    start: Callable[[], _Stream],
    *,
    limit_bytes: int,
    hold: Callable[[int], None],
    judge: Callable[[bytes], MalformedRequest | None],
) -> bytes:
    stream, members = start(), 1
    wrong: MalformedRequest | None = None
    pieces: list[bytes] = []
    size_bytes = 0
    for offset in range(0, len(body), _SLICE_BYTES):
        rest = body[offset : offset + _SLICE_BYTES]
        while rest:
            if stream.eof:
                if not rest.strip(b"\0"):  # tape padding, which gzip allows after its last member
                    break
                stream, members = start(), members + 1
                if members > _MAX_MEMBERS:
                    raise MalformedRequest(f"the body has more than {_MAX_MEMBERS:,} members")
            piece = stream.decompress(rest)
            size_bytes += len(piece)
            if size_bytes > limit_bytes:
                raise RequestTooLarge(limit_bytes)
            if piece and size_bytes == len(piece):
                wrong = judge(piece)
            if piece and wrong is None:
                hold(len(piece))
                pieces.append(piece)
            rest = stream.unused_data if stream.eof else b""
    if not stream.eof:
        raise EOFError
    if wrong is not None:
        raise wrong
    if len(pieces) > 1:
        hold(size_bytes)
    return b"".join(pieces)
