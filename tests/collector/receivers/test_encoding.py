"""Content encodings: everything sound is read, everything else is refused cheaply (otlp.md §3)."""

from __future__ import annotations

import gzip
import os
import tracemalloc
import zlib
from collections.abc import Callable

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from hansard_collector.errors import MalformedRequest, RequestTooLarge
from hansard_collector.receivers.content_encoding import inflate

MIB = 1 << 20
COMPRESSORS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "zstd": zstandard.ZstdCompressor().compress,
}
every_encoding = pytest.mark.parametrize("encoding", COMPRESSORS)


@given(st.sampled_from(sorted(COMPRESSORS)), st.lists(st.binary(max_size=3000), min_size=1))
def test_what_was_compressed_in_parts_comes_back_joined(encoding: str, parts: list[bytes]) -> None:
    body = b"".join(map(COMPRESSORS[encoding], parts))

    assert inflate(body, encoding, limit_bytes=MIB) == b"".join(parts)


@given(st.sampled_from(sorted(COMPRESSORS)), st.data())
def test_a_body_cut_anywhere_is_malformed(encoding: str, data: st.DataObject) -> None:
    body = COMPRESSORS[encoding](b"some telemetry, twice: some telemetry")
    cut = data.draw(st.integers(0, len(body) - 1))

    with pytest.raises(MalformedRequest):
        inflate(body[:cut], encoding, limit_bytes=MIB)


@given(st.sampled_from(sorted(COMPRESSORS)), st.binary(max_size=100))
def test_any_bytes_are_inflated_or_malformed(encoding: str, body: bytes) -> None:
    try:
        assert isinstance(inflate(body, encoding, limit_bytes=MIB), bytes)
    except MalformedRequest as error:
        assert encoding in str(error)  # noqa: PT017 — either way is right; the words must fit


@every_encoding
def test_a_body_of_exactly_the_limit_is_read_and_one_byte_more_is_too_large(encoding: str) -> None:
    assert len(inflate(COMPRESSORS[encoding](bytes(MIB)), encoding, limit_bytes=MIB)) == MIB

    with pytest.raises(RequestTooLarge):
        inflate(COMPRESSORS[encoding](bytes(MIB + 1)), encoding, limit_bytes=MIB)


@every_encoding
def test_large_bodies_that_do_not_compress_are_read_whole(encoding: str) -> None:
    content = os.urandom(20 * MIB)

    assert inflate(COMPRESSORS[encoding](content), encoding, limit_bytes=64 * MIB) == content


@every_encoding
def test_a_bomb_is_stopped_soon_after_the_limit(encoding: str) -> None:
    bomb = COMPRESSORS[encoding](bytes(256 * MIB))
    tracemalloc.start()

    with pytest.raises(RequestTooLarge):
        inflate(bomb, encoding, limit_bytes=8 * MIB)

    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak_bytes < 80 * MIB  # one slice of zstd may hold 32 MiB, twice while it is joined


def test_zero_padding_behind_the_last_gzip_member_is_ignored() -> None:
    assert inflate(gzip.compress(b"x") + bytes(5000), "gzip", limit_bytes=MIB) == b"x"


@pytest.mark.parametrize("rest", [b"rubbish", b"\0\0rubbish"])
def test_rubbish_behind_the_last_member_is_malformed(rest: bytes) -> None:
    with pytest.raises(MalformedRequest):
        inflate(gzip.compress(b"x") + rest, "gzip", limit_bytes=MIB)


def test_millions_of_empty_members_are_refused_early() -> None:
    with pytest.raises(MalformedRequest, match="more than 10,000 members"):
        inflate(gzip.compress(b"") * 20_000, "gzip", limit_bytes=MIB)


@every_encoding
def test_an_empty_body_is_no_compressed_one(encoding: str) -> None:
    with pytest.raises(MalformedRequest, match=f"empty, which is no {encoding}"):
        inflate(b"", encoding, limit_bytes=MIB)
