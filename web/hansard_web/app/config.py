"""Every setting of the server in one table, and how a value is found for it.

Precedence: argument, environment, file, default. Read once at start; nothing else reads the
environment. `docs/configuration.md` lists the same table, and a test compares the two.
"""

from __future__ import annotations

import difflib
import ipaddress
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Final, NamedTuple

from hansard._config.settings import FILE_TABLE as SDK_TABLE
from hansard_collector.judges.choices import (
    OFFLINE,
    Choice,
    ClassifierChoice,
    check_once,
    parse_choice,
    parse_classifier,
    parse_embedder,
)
from hansard_collector.pipeline.validation import LEAST_ATTRIBUTES, MOST_ATTRIBUTES, USUAL_LIMITS
from hansard_compiler.errors import ConfigError
from hansard_web.app.settings import Token, parse_token

RETENTIONS: Final = ("metadata_only", "redacted_payloads", "full_payloads")
DURABILITIES: Final = ("normal", "full")
SWITCHES: Final = ("on", "off")
DECIDERS: Final = ("principals", "anyone")
CONFIG_FILE: Final = "hansard.toml"

_DURATION: Final = re.compile(r"(\d+)\s*(s|m|h|d|w)")
_SIZE: Final = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]?)i?B?", re.IGNORECASE)
_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_NANOSECONDS: Final = 1_000_000_000
_LEAST_INTERVAL_NS: Final = 60 * _NANOSECONDS
_MOST_PORT: Final = 65_535


@dataclass(frozen=True, slots=True)
class Setting:
    """One row of the table. `parse` reads one text and raises ValueError with what it expected."""

    name: str
    parse: Callable[[str], Any]
    default: str  # as documentation says it
    kind: str  # the type, as documentation says it
    sentence: str
    is_list: bool = False
    is_secret: bool = False

    @property
    def env(self) -> str:
        return f"HANSARD_{self.name.upper()}"

    @property
    def flag(self) -> str:
        return f"--{self.name.replace('_', '-')}"


LONG_SECRET: Final = 24  # characters
# What `hansard doctor` asks of the running server: it may have been started with other settings.
_REPORTED: Final = ("decide", "heads_copy", "heartbeat", "keep", "max_disk", "short_tokens")


class RuleNumber(NamedTuple):
    """A number of one rule of the detector."""

    rule: str  # "" stands for all of them
    number: int


@dataclass(frozen=True, slots=True)
class Config:
    """What the server runs with; the fields are the rows of SETTINGS."""

    data: Path
    config: Path | None = None
    host: str = "127.0.0.1"
    http_port: int = 4318
    grpc_port: int = 4317
    socket: Path | None = None
    token: tuple[Token, ...] = ()
    tls_cert: Path | None = None
    tls_key: Path | None = None
    cors_origin: tuple[str, ...] = ()
    allow_host: tuple[str, ...] = ()
    retention: str = "redacted_payloads"
    durability: str = "normal"
    policy: tuple[Path, ...] = ()
    model_server: str | None = None
    script: Path | None = None
    mcp: str = "on"
    outbound: str = "off"
    decide: str = "principals"
    keep: int | None = None  # nanoseconds
    max_disk: int | None = None  # bytes
    max_attributes: int = USUAL_LIMITS.attributes
    heads_copy: str | None = None  # a folder, or off
    heartbeat: int | None = None  # nanoseconds between two cycles; None: off
    heartbeat_window: int = 24 * 3_600 * 10**9  # nanoseconds
    scan_url: str | None = None
    stale_after: int = 30 * 24 * 3_600 * 10**9  # nanoseconds
    classifier: tuple[ClassifierChoice, ...] = ()
    embedder: Choice = OFFLINE
    extractor: Choice = OFFLINE
    recipients: tuple[str, ...] = ()  # of reports, in the order in which they are named
    report_every: int = 24 * 3_600 * 10**9  # nanoseconds
    report_escalation: int = 24 * 3_600 * 10**9  # nanoseconds
    report_webhook: str | None = field(default=None, repr=False)
    detect_threshold: tuple[RuleNumber, ...] = ()
    detect_window: tuple[RuleNumber, ...] = ()  # nanoseconds
    detect_min_cases: tuple[RuleNumber, ...] = ()
    evidence: Path | None = None

    @property
    def is_local(self) -> bool:
        """Whether only programs of this machine reach the ports."""
        return is_loopback(self.host)

    @property
    def short_tokens(self) -> int:
        """How many configured tokens can be guessed."""
        return sum(len(one.secret) < LONG_SECRET for one in self.token)

    def reported(self) -> dict[str, Any]:
        """Return what a server says of the settings that it runs with; no secrets."""
        return {name: getattr(self, name) for name in _REPORTED}

    def differing(self, reported: Mapping[str, Any]) -> list[str]:
        """Return the settings that a running server was started with otherwise."""
        own = self.reported()
        return [name for name in _REPORTED if name in reported and reported[name] != own[name]]

    def of_server(self, reported: Mapping[str, Any]) -> Config:
        """Return it with what a running server says of its own settings."""
        of = {name: reported[name] for name in _REPORTED if name in reported}
        of.pop("short_tokens", None)
        return replace(self, **of)


def is_loopback(host: str) -> bool:
    """Whether an address or name is this machine's own."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


# ---- reading one value


def parse_port(text: str) -> int:
    """Read a TCP port; 0 lets the system choose."""
    if not text.isascii() or not text.isdecimal() or int(text) > _MOST_PORT:
        raise ValueError(f"a port from 0 (any free one) to {_MOST_PORT}")
    return int(text)


def parse_duration_ns(text: str) -> int:
    """Read `30d`, `12h`, `90m`, `45s` or `2w` as nanoseconds."""
    match = _DURATION.fullmatch(text.strip())
    if match is None or int(match[1]) == 0:
        raise ValueError("a number and a unit, such as 30d, 12h, 90m or 2w")
    return int(match[1]) * _SECONDS[match[2]] * _NANOSECONDS


def parse_size_bytes(text: str) -> int:
    """Read `20GB`, `512MB` or `1.5T`; units are powers of 1024."""
    match = _SIZE.fullmatch(text.strip())
    if match is None or float(match[1]) == 0:
        raise ValueError("a number and a unit, such as 20GB or 512MB")
    return int(float(match[1]) * 1024 ** " KMGT".index(match[2].upper() or " "))


def _parse_attributes(text: str) -> int:
    is_number = text.isascii() and text.isdecimal() and len(text) < 10
    if not is_number or not LEAST_ATTRIBUTES <= int(text) <= MOST_ATTRIBUTES:
        raise ValueError(f"a number from {LEAST_ATTRIBUTES} to {MOST_ATTRIBUTES}")
    return int(text)


def _parse_path(text: str) -> Path:
    if not text:
        raise ValueError("a path")
    return Path(text).expanduser()


def _parse_interval(text: str) -> int | None:
    if text == "off":
        return None
    interval_ns = parse_duration_ns(text)
    if interval_ns < _LEAST_INTERVAL_NS:
        raise ValueError("off, or a minute or more, such as 15m")
    return interval_ns


def _parse_heads_copy(text: str) -> str:
    return text if text == "off" else str(_parse_path(text))


def _parse_host(text: str) -> str:
    if not text or re.search(r"[\s/]", text) or text.count(":") == 1:
        raise ValueError("an address without a port, such as 127.0.0.1 or 0.0.0.0")
    return text.removeprefix("[").removesuffix("]")


def _parse_origin(text: str) -> str:
    if not re.fullmatch(r"https?://[^/\s]+", text):
        raise ValueError("an origin without a path, such as https://app.example")
    return text


def _parse_server(text: str) -> str:
    if not re.fullmatch(r"https?://[^\s]+", text):
        raise ValueError("an address, such as http://127.0.0.1:11434/v1")
    return text


def _parse_webhook(text: str) -> str:
    if not re.fullmatch(r"https?://[!-~]+", text):
        raise ValueError("an address, such as https://chat.example.com/hooks/1")
    return text


def parse_rule_count(text: str) -> RuleNumber:
    """Read `repeated_errors=3`, or `3` for every rule."""
    rule, _, number = text.rpartition("=")
    if not number.isascii() or not number.isdecimal() or len(number) > 9:
        raise ValueError("a number, or a rule, = and a number, such as repeated_errors=3")
    return RuleNumber(rule, int(number))


def parse_rule_window(text: str) -> RuleNumber:
    """Read `repeated_errors=48h`, or `48h` for every rule."""
    rule, _, length = text.rpartition("=")
    return RuleNumber(rule, parse_duration_ns(length))


def _parse_recipient(text: str) -> str:
    if not re.fullmatch(r"\S{1,200}", text):
        raise ValueError("a name without spaces, such as ana")
    return text


def _one_of(*allowed: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text not in allowed:
            raise ValueError(f"one of {', '.join(allowed)}")
        return text

    return parse


# ---- the table

SETTINGS: Final = (
    Setting(
        "data",
        _parse_path,
        "the platform's user data folder",
        "path",
        "Folder that holds the database, blobs and key of one store.",
    ),
    Setting(
        "config",
        _parse_path,
        f"{CONFIG_FILE} in the data folder, if it is there",
        "path",
        "TOML file with any of these settings.",
    ),
    Setting(
        "host",
        _parse_host,
        "127.0.0.1",
        "address",
        "Address both ports listen on; any but a loopback one needs a token.",
    ),
    Setting(
        "http_port",
        parse_port,
        "4318",
        "port",
        "Port of OTLP/HTTP, the JSON API and the pages; 0 picks a free one.",
    ),
    Setting("grpc_port", parse_port, "4317", "port", "Port of OTLP/gRPC; 0 picks a free one."),
    Setting(
        "socket",
        _parse_path,
        "none",
        "path",
        "Unix socket (mode 0600) that offers what the HTTP port offers.",
    ),
    Setting(
        "token",
        parse_token,
        "none",
        "token",
        "Token that every request must carry; `ingest:SECRET` and `read+decide:SECRET` limit "
        "what it opens.",
        is_list=True,
        is_secret=True,
    ),
    Setting("tls_cert", _parse_path, "none", "path", "Certificate (PEM) for both ports."),
    Setting("tls_key", _parse_path, "none", "path", "Private key (PEM) of the certificate."),
    Setting(
        "cors_origin",
        _parse_origin,
        "none",
        "origin",
        "Origin whose pages may send telemetry from a browser.",
        is_list=True,
    ),
    Setting(
        "allow_host",
        _parse_host,
        "none",
        "name",
        "Host name that requests may use beside localhost and the bound address.",
        is_list=True,
    ),
    Setting(
        "retention",
        _one_of(*RETENTIONS),
        "redacted_payloads",
        " | ".join(RETENTIONS),
        "How much content is stored: none, all but secrets, or everything.",
    ),
    Setting(
        "durability",
        _one_of(*DURABILITIES),
        "normal",
        " | ".join(DURABILITIES),
        "What an acknowledged span survives: a crash of the process, or a power cut as well.",
    ),
    Setting(
        "policy",
        _parse_path,
        "none",
        "path",
        "File of policy rules (JSON or YAML), or `shipped:NAME`; read again when it changes.",
        is_list=True,
    ),
    Setting(
        "model_server",
        _parse_server,
        "none",
        "address",
        "Address of an OpenAI-compatible server that `POST /v1/model/call` may ask.",
    ),
    Setting(
        "script",
        _parse_path,
        "none",
        "path",
        "Script (JSON) of the scripted model, for calls and replays that bring none.",
    ),
    Setting(
        "mcp",
        _one_of(*SWITCHES),
        "on",
        " | ".join(SWITCHES),
        "Whether `/mcp` answers MCP clients (needs the extra `mcp`).",
    ),
    Setting(
        "outbound",
        _one_of(*SWITCHES),
        "off",
        " | ".join(SWITCHES),
        "Whether `hansard scan` and the heartbeat may ask a source of stories outside; nothing "
        "else looks at this.",
    ),
    Setting(
        "decide",
        _one_of(*DECIDERS),
        "principals",
        " | ".join(DECIDERS),
        "Who may decide about approvals, tasks and memory: holders of a token, or anyone who "
        "reaches the server.",
    ),
    Setting(
        "keep",
        parse_duration_ns,
        "for ever",
        "duration",
        "Runs that received nothing for this long are deleted; pinned ones stay.",
    ),
    Setting(
        "max_disk",
        parse_size_bytes,
        "no limit",
        "size",
        "The oldest runs are deleted when the store is larger than this; pinned ones stay.",
    ),
    Setting(
        "max_attributes",
        _parse_attributes,
        str(USUAL_LIMITS.attributes),
        "number",
        "Attributes, events or links that one span may have; one with more is rejected singly.",
    ),
    Setting(
        "heads_copy",
        _parse_heads_copy,
        "the platform's user state folder",
        "path | off",
        "Folder for second copies of the audit log's head, a small file per store; "
        "programs with a gate of their own take it from the environment.",
    ),
    Setting(
        "heartbeat",
        _parse_interval,
        "off",
        "duration | off",
        "How often a server runs a cycle of the heartbeat, such as 15m.",
    ),
    Setting(
        "heartbeat_window",
        parse_duration_ns,
        "24h",
        "duration",
        "How far back a cycle of the heartbeat compares claims with what happened.",
    ),
    Setting(
        "scan_url",
        _parse_server,
        "the source's own",
        "address",
        "Address of the API that `hansard scan` and the heartbeat ask for stories: a mirror's.",
    ),
    Setting(
        "classifier",
        parse_classifier,
        "offline",
        "[TASK=]offline | off | PROVIDER:MODEL",
        "What classifies stories, contradictions and commands; behind `TASK=` for one of `topic`, "
        "`contradiction`, `irreversible` alone.",
        is_list=True,
    ),
    Setting(
        "embedder",
        parse_embedder,
        "offline",
        "offline | wordllama | off | PROVIDER:MODEL",
        "What compares texts by meaning; `wordllama` needs the extra `embeddings`.",
    ),
    Setting(
        "extractor",
        parse_choice,
        "offline",
        "offline | off | PROVIDER:MODEL",
        "What finds the topics of recent memory that become interests.",
    ),
    Setting(
        "recipients",
        _parse_recipient,
        "none",
        "name",
        "Who reads status reports: the first one, then the next when nobody acknowledged it.",
        is_list=True,
    ),
    Setting(
        "report_every",
        parse_duration_ns,
        "24h",
        "duration",
        "How often the heartbeat writes a status report; sooner when a review was opened.",
    ),
    Setting(
        "report_escalation",
        parse_duration_ns,
        "24h",
        "duration",
        "How long a report waits for one recipient before it waits for the next one.",
    ),
    Setting(
        "report_webhook",
        _parse_webhook,
        "none",
        "address",
        "Address that the heartbeat sends each new report to, as JSON: a chat program's webhook.",
        is_secret=True,
    ),
    Setting(
        "detect_threshold",
        parse_rule_count,
        "each rule's own",
        "[rule=]number",
        "How often makes a pattern of the detector.",
        is_list=True,
    ),
    Setting(
        "detect_window",
        parse_rule_window,
        "each rule's own",
        "[rule=]duration",
        "Within what time that makes a pattern.",
        is_list=True,
    ),
    Setting(
        "detect_min_cases",
        parse_rule_count,
        "each rule's own",
        "[rule=]number",
        "How many cases a rule about a share needs before it judges.",
        is_list=True,
    ),
    Setting(
        "stale_after",
        parse_duration_ns,
        "30d",
        "duration",
        "After how long without a retrieval maintenance counts a memory as stale.",
    ),
    Setting(
        "evidence",
        _parse_path,
        "none",
        "path",
        "File (TOML) that says which results of tools are evidence of success, and what is said "
        "of them.",
    ),
)
_BY_NAME: Final = {setting.name: setting for setting in SETTINGS}


def setting(name: str) -> Setting:
    """Return a row of the table."""
    return _BY_NAME[name]


# ---- finding the values


def load_config(arguments: Mapping[str, Any], environment: Mapping[str, str]) -> Config:
    """Return the configuration; absent arguments are None or ().

    Raises ConfigError for a value that cannot be meant, naming where it was found.
    """
    found: dict[str, Any] = {}
    for row in SETTINGS:
        given = arguments.get(row.name)
        if given is not None and given != ():
            found[row.name] = _read(row, given, source=row.flag)
        elif environment.get(row.env):
            found[row.name] = _read(row, environment[row.env], source=row.env)
    _add_file(found)
    if "data" not in found:
        found["data"] = default_data_folder()
    config = Config(**found)
    _check(config)
    return config


def data_folder(argument: str | None, environment: Mapping[str, str]) -> Path:
    """Return the data folder as every command finds it."""
    return load_config({"data": argument}, environment).data


def default_data_folder() -> Path:
    """Return where the platform keeps a user's data; ConfigError for a user without a home."""
    from platformdirs import user_data_path  # a server's package; only this line needs it

    try:
        return user_data_path("hansard", appauthor=False)
    except RuntimeError as error:  # a container's user that is in no passwd
        raise ConfigError(f"{error}; or name the folder: --data or HANSARD_DATA") from None


def _add_file(found: dict[str, Any]) -> None:
    named = found.get("config")
    path = named or (found.get("data") or default_data_folder()) / CONFIG_FILE
    if named is None and not _is_there(path):
        return
    for name, value in _read_file(path).items():
        if name == SDK_TABLE and isinstance(value, dict):
            continue  # for the programs that send; `hansard._config.settings` reads it
        row = _BY_NAME.get(name)
        if row is None:
            raise ConfigError(f"{path}: {name!r} is no setting{_closest(name)}")
        if name not in found:
            found[name] = _read(row, value, source=f"{path}: {name}")


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except PermissionError as error:  # in the folder of another user
        raise ConfigError(f"cannot read {path}: {error.strerror}") from None


def _read_file(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not TOML: {error}") from None


def _closest(name: str) -> str:
    close = difflib.get_close_matches(name, _BY_NAME, n=1)
    return f"; did you mean {close[0]!r}?" if close else ""


def _read(row: Setting, given: Any, *, source: str) -> Any:
    if not row.is_list:
        return _read_one(row, given, source=source)
    # In the environment values are apart by spaces, which no token, name or origin contains.
    values = given.split() if isinstance(given, str) else given
    if not isinstance(values, list | tuple):
        raise ConfigError(f"{source} is {given!r}; expected a list of texts")
    return tuple(_read_one(row, value, source=source) for value in values)


def _read_one(row: Setting, given: Any, *, source: str) -> Any:
    is_number = isinstance(given, int) and not isinstance(given, bool)
    text = str(given) if is_number else given
    try:
        if not isinstance(text, str):
            raise ValueError(row.kind)
        return row.parse(text)
    except ValueError as error:
        shown = "the value" if row.is_secret else repr(given)
        raise ConfigError(f"{source}: {shown} is no {row.kind}; expected {error}") from None
    except ConfigError as error:
        raise ConfigError(f"{source}: {error}") from None


def _check(config: Config) -> None:
    check_once(config.classifier)
    if not config.is_local and not config.token:
        raise ConfigError(
            f"--host {config.host} is reached from other machines, so a token is needed: "
            "add --token SECRET (or HANSARD_TOKEN)"
        )
    if (config.tls_cert is None) != (config.tls_key is None):
        raise ConfigError("--tls-cert and --tls-key go together; one of them is missing")


assert {row.name for row in SETTINGS} == {field.name for field in fields(Config)}
