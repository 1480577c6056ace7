"""Tokens that make any attribute of any span findable.

`attribute_fts` holds one document a span (rowid = span.id): for each attribute a token of its key,
and one of its key and value. A token is 64 bits of BLAKE2b in hex, so the index costs the same for
`temperature=0.2` as for a path of 500 characters (ingest-measurements §4: 34 µs and 125 B a span,
every equality or existence query under 2 ms at a million spans). Two values that share a token can
be found in 2^32 tries; all that gains is a run too many in a list that was narrowed by one of them.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from typing import Any

MAX_NUMBERS = 1_024  # a vector has more, and is not filtered by its elements
MAX_VALUE_CHARS = 512  # longer texts are found by full text search, not by equality
# How the SDK and the machine describe themselves: the same on every span, filtered by nobody.
_UNINDEXED_RESOURCE = ("telemetry.", "process.", "os.")
_CACHE_ENTRIES = 25_000
# Dialects that flatten messages into keys send all earlier ones again with every call. Only the
# first eight are indexed, or the index would grow with the square of a conversation's length;
# what later ones say is found by full text search.
_FLAT_MESSAGES = ("llm.", "gen_ai.prompt.", "gen_ai.completion.")
_LATER_MESSAGE = re.compile(
    r"(?:llm\.(?:input_messages|output_messages|prompts)|gen_ai\.(?:prompt|completion))"
    r"\.(?:[89]|[0-9]{2,})\.",
    re.ASCII,
)

# Numbers of receipts, hundreds a compile: requested by receipt, never by attribute.
_UNINDEXED_ELEMENTS = frozenset(
    f"hansard.item.{name}"
    for name in ("scores", "tokens_before", "tokens_after", "missed_tokens", "missed_scores")
)

# Most pairs of key and value repeat from span to span. Filled by the pipeline thread and, for
# queries, by readers; single dict operations are atomic, and a lost entry is computed again.
_pair_cache: dict[tuple[str, str], str] = {}
_key_cache: dict[str, str] = {}


def key_token(key: str) -> str:
    """Return the token that says: the span has this key, whatever its value."""
    token = _key_cache.get(key)
    if token is None:
        token = _digest(key.encode("utf-8", "surrogatepass"))
        _remember(_key_cache, key, token)
    return token


def attribute_token(key: str, value: str | bool | int | float) -> str:
    """Return the token that says: the span has this key with this value.

    Only the text of the value counts: the integer 5 and the string "5" have one token, because a
    person who filters types `5`. True is `true`, floats are their shortest exact form.
    """
    return _digest(_pair_bytes(key, _text(value)))


def tokens_of(attributes: Mapping[str, Any]) -> str:
    """Return the document of a span's attributes for `attribute_fts`.

    Texts in an array count singly, and numbers among its first MAX_NUMBERS elements. Maps, bytes,
    nulls and texts longer than MAX_VALUE_CHARS are known by their key alone, and so are the numbers
    of receipts; messages past the eighth are not known at all.
    """
    tokens: list[str] = []
    append = tokens.append
    cached = _pair_cache.get
    for key, value in attributes.items():
        kind = type(value)
        if kind is str:
            # A long text is in no pair: it need not be hashed to find that out.
            known = cached((key, value)) if len(value) <= MAX_VALUE_CHARS else None
            append(known or _pair(key, value))
        elif kind is int or kind is float or kind is bool:
            text = _text(value)
            append(cached((key, text)) or _pair(key, text))
        elif not _is_later_message(key):
            is_list = isinstance(value, list | tuple) and key not in _UNINDEXED_ELEMENTS
            values = _element_tokens(key, value) if is_list else ()
            append(" ".join([key_token(key), *values]))
    return " ".join(tokens)


def resource_tokens_of(resource: Mapping[str, Any]) -> str:
    """Return the part of a span's document that its resource adds; compute it once a resource."""
    return tokens_of(
        {key: resource[key] for key in resource if not key.startswith(_UNINDEXED_RESOURCE)}
    )


def _element_tokens(key: str, values: list[Any] | tuple[Any, ...]) -> Iterator[str]:
    numbers = (v for v in values[:MAX_NUMBERS] if isinstance(v, bool | int | float))
    texts = (v for v in values if isinstance(v, str))
    for value in dict.fromkeys(_text(v) for v in (*texts, *numbers)):
        if len(value) <= MAX_VALUE_CHARS:
            yield attribute_token(key, value)


def _is_later_message(key: str) -> bool:
    return key.startswith(_FLAT_MESSAGES) and _LATER_MESSAGE.match(key) is not None


def _pair(key: str, text: str) -> str:
    if key.startswith(_FLAT_MESSAGES) and _LATER_MESSAGE.match(key) is not None:
        return ""
    token = _key_cache.get(key) or key_token(key)
    if len(text) > MAX_VALUE_CHARS:
        return token
    token = f"{token} {_digest(_pair_bytes(key, text))}"
    _remember(_pair_cache, (key, text), token)
    return token


def _text(value: str | bool | int | float) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value)


def _pair_bytes(key: str, text: str) -> bytes:
    return f"{key}\0{text}".encode("utf-8", "surrogatepass")


def _digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=8).hexdigest()


def _remember(cache: dict[Any, str], key: Any, token: str) -> None:
    if len(cache) >= _CACHE_ENTRIES:
        cache.clear()  # rare; refilling costs a microsecond an entry
    cache[key] = token
