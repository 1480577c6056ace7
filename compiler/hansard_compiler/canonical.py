"""Canonical JSON: one text for one value, so that equal things have equal hashes everywhere.

Keys are sorted by code point, separators are bare, text is not escaped beyond what JSON demands.
Integers are exact at any size; floats are written as Python's shortest round-trip ``repr``, so
``1`` and ``1.0`` differ. What JSON cannot say is tagged: ``{"$float": "nan"}`` (also ``inf`` and
``-inf``), ``{"$bytes": "<base64>"}``. Lone surrogates are written as ``\\ud…`` escapes, which
keeps the text valid UTF-8 and two different broken texts different.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

_SURROGATE = re.compile("[\ud800-\udfff]")


def _make_encode() -> Callable[[Any], str]:
    """Return what writes one value, in CPython by its C encoder, made once and for all.

    `JSONEncoder.encode` makes one anew for each value: of small values, which most are that are
    hashed, two thirds of the time.
    """
    plain = json.JSONEncoder(
        ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False
    )
    make = getattr(json.encoder, "c_make_encoder", None)
    if make is None:
        return plain.encode
    # No markers: what holds itself ends in a RecursionError, as it does in `_tagged`.
    text = json.encoder.encode_basestring
    write = make(None, plain.default, text, None, ":", ",", True, False, False)
    return lambda value: "".join(write(value, 0))


_encode = _make_encode()


def canonical_json(value: Any) -> str:
    """Return the canonical JSON text of a value made of JSON types, bytes and tuples.

    Raises TypeError for any other type: a hash over a ``repr`` would differ between processes.
    """
    return _escape_surrogates(_written(value, 0))


def canonical_bytes(value: Any, *, pieces: int = 0) -> bytes:
    """Return the canonical JSON text as UTF-8.

    `pieces` is how many levels are written value by value: the bytes are the same, and other
    threads run in between. Two megabytes at once hold Python's lock for 30 ms.
    """
    text = _written(value, pieces)
    try:
        return text.encode("utf-8")  # says whether there are surrogates in a hundredth of the time
    except UnicodeEncodeError:
        return _escape_surrogates(text).encode("utf-8")


def stable_hash(value: Any, *, pieces: int = 0) -> bytes:
    """Return the sha256 (32 bytes) of a value's canonical JSON, written as there."""
    return hashlib.sha256(canonical_bytes(value, pieces=pieces)).digest()


def ref_of(data: bytes) -> str:
    """Return `sha256:` and the digest of some bytes, by which a payload is referred to."""
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def content_digest(value: Any) -> str | None:
    """Return `sha256:` and the digest of a text's UTF-8, or of another value's canonical JSON.

    None where a value has no canonical form.
    """
    try:
        data = value.encode() if isinstance(value, str) else canonical_bytes(value)
    except (TypeError, ValueError, RecursionError):
        return None
    return ref_of(data)


def _written(value: Any, pieces: int) -> str:
    try:
        return _in_pieces(value, pieces)
    except (ValueError, TypeError):
        # NaN, infinities, bytes or non-string keys: the rare cases pay for a second walk.
        return _encode(_tagged(value))


def _in_pieces(value: Any, levels: int) -> str:
    if levels and isinstance(value, dict) and all(isinstance(key, str) for key in value):
        members = (f"{_encode(key)}:{_in_pieces(value[key], levels - 1)}" for key in sorted(value))
        return f"{{{','.join(members)}}}"
    if levels and isinstance(value, list | tuple):
        # The last level has thousands of values, one for each item of a compile.
        inner = _encode if levels == 1 else partial(_in_pieces, levels=levels - 1)
        return f"[{','.join(map(inner, value))}]"
    return _encode(value)


def _tagged(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return {"$float": repr(value)}
    if isinstance(value, bytes | bytearray | memoryview):
        return {"$bytes": base64.b64encode(bytes(value)).decode("ascii")}
    if isinstance(value, Mapping):
        if not all(isinstance(key, str) for key in value):
            raise TypeError("canonical JSON takes mappings with text keys only")
        return {key: _tagged(child) for key, child in value.items()}
    if isinstance(value, list | tuple):
        return [_tagged(child) for child in value]
    if value is None or isinstance(value, str | int | float | bool):
        return value
    raise TypeError(f"canonical JSON has no form for {type(value).__name__}")


def _escape_surrogates(text: str) -> str:
    if not _SURROGATE.search(text):
        return text
    return _SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
