"""One setting: how its text is read, and where its value is found.

The SDK's table (`settings.py`) and the server's (`hansard_web.app.config`) are made of these rows.
Precedence is the same for both: argument, environment, file, default. Each reader raises ValueError
with what it expected.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias, TypeVar
from urllib.parse import unquote, urlsplit

from hansard_compiler.retention_modes import RetentionMode

CONFIG_FILE: Final = "hansard.toml"
FILE_TABLE: Final = "sdk"  # of the file; the server's settings stand above all tables
GRPC: Final = "grpc"
HTTP: Final = "http/protobuf"

_DURATION: Final = re.compile(r"(\d+)\s*(s|m|h|d|w)")
_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_SIZE: Final = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]?)i?B?", re.IGNORECASE)
_SCOPED_TOKEN: Final = re.compile(r"([a-z+]+):(?=.)")
_INGEST_SCOPES: Final = {"ingest", "admin"}
_PROTOCOLS: Final = {GRPC: GRPC, HTTP: HTTP, "http": HTTP}
_Number = TypeVar("_Number", int, float)
_YES, _NO = {"true", "1", "yes", "on"}, {"false", "0", "no", "off"}


@dataclass(frozen=True, slots=True)
class Setting:
    """One row of a table of settings."""

    name: str
    read: Callable[[Any], Any]  # of a list: one of its values
    env: tuple[str, ...]  # in order; the first that is set and not empty counts
    default: str  # as documentation says it
    kind: str  # the type, as documentation says it
    sentence: str
    is_list: bool = False
    is_secret: bool = False

    @property
    def variable(self) -> str:
        """The environment variable that counts first."""
        return self.env[0]

    @property
    def flag(self) -> str:
        """The option of a command."""
        return f"--{self.name.replace('_', '-')}"


@dataclass(frozen=True, slots=True)
class Found:
    """A value, and where it was found."""

    value: Any
    source: str
    level: int  # 0 argument, 1 our environment, 2 OpenTelemetry's, 3 file, 4 derived


PASSED_OVER: Final = object()  # a value that cannot be read, and is not worth an error
# Reads the value of a row, and its source; raises ConfigError, or returns PASSED_OVER.
ReadAt: TypeAlias = Callable[[Setting, Any, str], Any]


def find_settings(
    rows: Iterable[Setting],
    arguments: Mapping[str, Any],
    environment: Mapping[str, str],
    *,
    argument: ReadAt,
    variable: ReadAt,
) -> dict[str, Found]:
    """Return the values of arguments and environment, by name; () and None are no arguments."""
    found: dict[str, Found] = {}
    for row in rows:
        value = arguments.get(row.name)
        if value is not None and value != ():
            found[row.name] = Found(argument(row, value, row.name), "argument", 0)
            continue
        name = next((one for one in row.env if environment.get(one, "").strip()), None)
        if name is None:
            continue
        value = variable(row, environment[name], name)
        if value is not PASSED_OVER:
            level = 1 if name.startswith("HANSARD_") else 2
            found[row.name] = Found(value, f"environment {name}", level)
    return found


def add_from_file(
    found: dict[str, Found],
    table: Mapping[str, Any],
    path: Path,
    *,
    rows: Mapping[str, Setting],
    read: ReadAt,
    unknown: Callable[[str], None],
) -> None:
    """Add the values of a table of the file that nothing above it set."""
    for name, value in table.items():
        row = rows.get(name)
        if row is None:
            unknown(name)
        elif name not in found:
            one = read(row, value, f"{path}: {name}")
            if one is not PASSED_OVER:
                found[name] = Found(one, f"file {path}", 3)


def shown(row: Setting, value: Any) -> str:
    """Return a value as an error shows it; nothing of a secret."""
    return "the value" if row.is_secret else repr(value)


def default_data_folder() -> Path:
    """Return where the platform keeps a user's data.

    RuntimeError for a user without a home, as containers have them.
    """
    from platformdirs import user_data_path  # only who names no folder pays for it

    return user_data_path("hansard", appauthor=False)


# ---- reading one value


def read_text(raw: Any) -> str:
    """Read a text that is not empty."""
    text = _text(raw).strip()
    if not text:
        raise ValueError("a text")
    return text


def read_path(raw: Any) -> Path:
    """Read a path; `~` is the home folder."""
    return Path(read_text(raw)).expanduser()


def read_flag(raw: Any) -> bool:
    """Read true or false, in the usual spellings."""
    word = _text(raw).strip().lower()
    if word not in _YES | _NO:
        raise ValueError("true or false")
    return word in _YES


def read_disabled(raw: Any) -> bool:
    """Read OTEL_SDK_DISABLED: by its specification only `true`, in any case, means yes."""
    return _text(raw).strip().lower() == "true"


def read_url(raw: Any) -> str:
    """Read an endpoint: a URL, or `host:port` as gRPC's users write it."""
    text = read_text(raw)
    url = text if "://" in text else f"http://{text}"
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:  # the port is none
        usable = False
    if not usable:
        raise ValueError("an address such as http://127.0.0.1:4318")
    return url.rstrip("/")


def read_protocol(raw: Any) -> str:
    """Read one of the protocols that the stock exporters speak."""
    protocol = _PROTOCOLS.get(_text(raw).strip().lower())
    if protocol is None:
        raise ValueError("grpc or http/protobuf")
    return protocol


def read_compression(raw: Any) -> str:
    """Read what request bodies are compressed with."""
    word = _text(raw).strip().lower()
    if word not in ("none", "gzip", "deflate"):
        raise ValueError("none, gzip or deflate")
    return word


def read_retention(raw: Any) -> RetentionMode:
    """Read a retention mode."""
    try:
        return RetentionMode(_text(raw).strip())
    except ValueError:
        raise ValueError("metadata_only, redacted_payloads or full_payloads") from None


def read_pairs(raw: Any) -> dict[str, str]:
    """Read a mapping, or `name=value,…` with values in URL encoding, as OpenTelemetry writes it."""
    if isinstance(raw, Mapping):
        return {read_text(name): _text(value) for name, value in raw.items()}
    pairs = [pair.partition("=") for pair in read_text(raw).split(",") if pair.strip()]
    if not all(name.strip() and equals for name, equals, _ in pairs):
        raise ValueError("name=value,…")
    return {name.strip(): unquote(value.strip()) for name, _, value in pairs}


def read_headers(raw: Any) -> dict[str, str]:
    """Read headers as `read_pairs` does; their names are in lower case, as gRPC wants them."""
    return {unquote(name).lower(): value for name, value in read_pairs(raw).items()}


def read_token(raw: Any) -> str:
    """Read a token as the server's own setting is written: of several, one that may ingest.

    `SECRET`, or `ingest:SECRET read:OTHER`; the scopes are the server's business.
    """
    for word in read_text(raw).split():
        scoped = _SCOPED_TOKEN.match(word)
        if scoped is None:
            return word
        if _INGEST_SCOPES & set(scoped[1].split("+")):
            return word[scoped.end() :]
    raise ValueError("a token that may ingest")


def read_share(raw: Any) -> float:
    """Read a number from 0 to 1."""
    return _read_number(float, raw, lambda number: 0 <= number <= 1, "a number from 0 to 1")


def read_seconds(raw: Any) -> float:
    """Read a positive number of seconds."""
    expected = "a positive number of seconds"
    return _read_number(float, raw, lambda number: 0 < number < float("inf"), expected)


def read_size_bytes(raw: Any, *, may_be_zero: bool = True, example: str = "256MB") -> int:
    """Read `256MB`, `1.5T` or a number of bytes; units are powers of 1024."""
    match = _SIZE.fullmatch(_text(raw).strip())
    if match is None or not (may_be_zero or float(match[1])):
        raise ValueError(f"a number and a unit, such as {example}")
    return int(float(match[1]) * 1024 ** " KMGT".index(match[2].upper() or " "))


def read_duration_ns(raw: Any) -> int:
    """Read `30d`, `12h`, `90m`, `45s` or `2w` as nanoseconds."""
    match = _DURATION.fullmatch(_text(raw).strip())
    if match is None or int(match[1]) == 0:
        raise ValueError("a number and a unit, such as 30d, 12h, 90m or 2w")
    return int(match[1]) * _SECONDS[match[2]] * 1_000_000_000


def at_least(least: int) -> Callable[[Any], int]:
    """Return a reader of whole numbers."""

    def read(raw: Any) -> int:
        expected = f"a whole number of at least {least}"
        return _read_number(int, raw, lambda number: number >= least, expected)

    return read


def _read_number(
    kind: Callable[[str], _Number], raw: Any, fits: Callable[[_Number], bool], expected: str
) -> _Number:
    try:
        number = kind(_text(raw))
    except ValueError:
        raise ValueError(expected) from None
    if not fits(number):
        raise ValueError(expected)
    return number


def one_of(*allowed: str) -> Callable[[str], str]:
    """Return a reader of one of these words."""

    def read(raw: str) -> str:
        if raw not in allowed:
            raise ValueError(f"one of {', '.join(allowed)}")
        return raw

    return read


def matching(pattern: str, expected: str) -> Callable[[str], str]:
    """Return a reader of texts that match a pattern as a whole."""

    def read(raw: str) -> str:
        if not re.fullmatch(pattern, raw):
            raise ValueError(expected)
        return raw

    return read


def _text(raw: Any) -> str:
    if isinstance(raw, bool):
        return "true" if raw else "false"
    if isinstance(raw, str | int | float | Path):
        return str(raw)
    raise ValueError("a text")
