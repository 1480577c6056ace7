"""How one setting's text is read. Each reader raises ValueError with what it expected."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from hansard_compiler.retention import RetentionMode

GRPC = "grpc"
HTTP = "http/protobuf"

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]?)i?B?", re.IGNORECASE)
_SCOPED_TOKEN = re.compile(r"([a-z+]+):(?=.)")
_INGEST_SCOPES = {"ingest", "admin"}
_PROTOCOLS = {GRPC: GRPC, HTTP: HTTP, "http": HTTP}
_YES, _NO = {"true", "1", "yes", "on"}, {"false", "0", "no", "off"}


def read_text(given: Any) -> str:
    """Read a text that is not empty."""
    text = _text(given).strip()
    if not text:
        raise ValueError("a text")
    return text


def read_path(given: Any) -> Path:
    """Read a path; `~` is the home folder."""
    return Path(read_text(given)).expanduser()


def read_flag(given: Any) -> bool:
    """Read true or false, in the usual spellings."""
    word = _text(given).strip().lower()
    if word not in _YES | _NO:
        raise ValueError("true or false")
    return word in _YES


def read_disabled(given: Any) -> bool:
    """Read OTEL_SDK_DISABLED: by its specification only `true`, in any case, means yes."""
    return _text(given).strip().lower() == "true"


def read_url(given: Any) -> str:
    """Read an endpoint: a URL, or `host:port` as gRPC's users write it."""
    text = read_text(given)
    url = text if "://" in text else f"http://{text}"
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:  # the port is none
        usable = False
    if not usable:
        raise ValueError("an address such as http://127.0.0.1:4318")
    return url.rstrip("/")


def read_protocol(given: Any) -> str:
    """Read one of the protocols that the stock exporters speak."""
    protocol = _PROTOCOLS.get(_text(given).strip().lower())
    if protocol is None:
        raise ValueError("grpc or http/protobuf")
    return protocol


def read_compression(given: Any) -> str:
    """Read what request bodies are compressed with."""
    word = _text(given).strip().lower()
    if word not in ("none", "gzip", "deflate"):
        raise ValueError("none, gzip or deflate")
    return word


def read_retention(given: Any) -> RetentionMode:
    """Read a retention mode."""
    try:
        return RetentionMode(_text(given).strip())
    except ValueError:
        raise ValueError("metadata_only, redacted_payloads or full_payloads") from None


def read_pairs(given: Any) -> dict[str, str]:
    """Read a mapping, or `name=value,…` with values in URL encoding, as OpenTelemetry writes it."""
    if isinstance(given, Mapping):
        return {read_text(name): _text(value) for name, value in given.items()}
    pairs = [pair.partition("=") for pair in read_text(given).split(",") if pair.strip()]
    if not all(name.strip() and equals for name, equals, _ in pairs):
        raise ValueError("name=value,…")
    return {name.strip(): unquote(value.strip()) for name, _, value in pairs}


def read_headers(given: Any) -> dict[str, str]:
    """Read headers as `read_pairs` does; their names are in lower case, as gRPC wants them."""
    return {unquote(name).lower(): value for name, value in read_pairs(given).items()}


def read_token(given: Any) -> str:
    """Read a token as the server's own setting is written: of several, one that may ingest.

    `SECRET`, or `ingest:SECRET read:OTHER`; the scopes are the server's business.
    """
    for word in read_text(given).split():
        scoped = _SCOPED_TOKEN.match(word)
        if scoped is None:
            return word
        if _INGEST_SCOPES & set(scoped[1].split("+")):
            return word[scoped.end() :]
    raise ValueError("a token that may ingest")


def read_share(given: Any) -> float:
    """Read a number from 0 to 1."""
    try:
        number = float(_text(given))
    except ValueError:
        number = -1
    if not 0 <= number <= 1:
        raise ValueError("a number from 0 to 1")
    return number


def read_seconds(given: Any) -> float:
    """Read a positive number of seconds."""
    try:
        number = float(_text(given))
    except ValueError:
        number = 0
    if not 0 < number < float("inf"):
        raise ValueError("a positive number of seconds")
    return number


def read_bytes_count(given: Any) -> int:
    """Read `256MB`, or a number of bytes; units are powers of 1024."""
    match = _SIZE.fullmatch(_text(given).strip())
    if match is None:
        raise ValueError("a number and a unit, such as 256MB")
    return int(float(match[1]) * 1024 ** " KMGT".index(match[2].upper() or " "))


def at_least(least: int) -> Callable[[Any], int]:
    """Return a reader of whole numbers."""

    def read(given: Any) -> int:
        try:
            number = int(_text(given))
        except ValueError:
            number = least - 1
        if number < least:
            raise ValueError(f"a whole number of at least {least}")
        return number

    return read


def _text(given: Any) -> str:
    if isinstance(given, bool):
        return "true" if given else "false"
    if isinstance(given, str | int | float | Path):
        return str(given)
    raise ValueError("a text")
