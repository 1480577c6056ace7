"""Every setting of the server in one table, and what is made of it.

How a value is read and found is `hansard._config.setting`, as for the SDK's. Read once at start;
nothing else reads the environment. `docs/configuration.md` lists the same table, and a test
compares the two.
"""

from __future__ import annotations

import difflib
import ipaddress
import os
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import orjson

from hansard._config.setting import (
    CONFIG_FILE,
    FILE_TABLE,
    Found,
    Setting,
    add_from_file,
    default_data_folder,
    find_settings,
    matching,
    one_of,
    read_duration_ns,
    read_size_bytes,
    shown,
)
from hansard_collector.judges.choices import (
    OFFLINE,
    Choice,
    ClassifierChoice,
    check_once,
    parse_choice,
    parse_classifier,
    parse_embedder,
)
from hansard_collector.notifications.messages import Webhook
from hansard_collector.pipeline.validation import LEAST_ATTRIBUTES, MOST_ATTRIBUTES, USUAL_LIMITS
from hansard_collector.webhooks import host_of
from hansard_compiler.calls import Json
from hansard_compiler.errors import ConfigError
from hansard_store.notifications.records import SUBJECTS
from hansard_store.principals.authority import DecideMode
from hansard_store.principals.model import ALL_SCOPES, Scope
from hansard_web.ui.format import duration, file_size

if TYPE_CHECKING:
    from hansard_collector.judges import Judges

RETENTIONS: Final = ("metadata_only", "redacted_payloads", "full_payloads")
DURABILITIES: Final = ("normal", "full")
SWITCHES: Final = ("on", "off")
DECIDERS: Final = ("principals", "anyone")
JUDGE_SETTINGS: Final = ("classifier", "embedder", "extractor", "model_server", "script")

_SCOPED = re.compile(
    r"(?P<scopes>(?:ingest|read|decide|admin)(?:\+(?:ingest|read|decide|admin))*):"
)
_SHORTEST_TOKEN = 8
_NANOSECONDS: Final = 1_000_000_000
_LEAST_INTERVAL_NS: Final = 60 * _NANOSECONDS
_MOST_PORT: Final = 65_535

LONG_SECRET: Final = 24  # characters
# What `hansard doctor` asks of the running server: it may have been started with other settings.
_MAY_HOLD_SECRETS: Final = frozenset({"notify", "report_webhook", "scan_url", "model_server"})
_REPORTED: Final = ("decide", "heads_copy", "heartbeat", "keep", "max_disk", "short_tokens")


@dataclass(frozen=True, slots=True)
class AccessToken:
    """A secret and what it opens."""

    secret: str = field(repr=False)
    scopes: frozenset[Scope] = ALL_SCOPES

    def allows(self, scope: Scope) -> bool:
        """Whether the token has this scope; `admin` has all."""
        return scope in self.scopes or Scope.ADMIN in self.scopes


def parse_token(text: str) -> AccessToken:
    """Read `SECRET` (may do everything) or `ingest:SECRET`, `read+decide:SECRET`.

    Raises ConfigError for a secret too short to be one.
    """
    match = _SCOPED.match(text)
    secret = text[match.end() :] if match else text
    if len(secret) < _SHORTEST_TOKEN:
        raise ConfigError(f"a token needs at least {_SHORTEST_TOKEN} characters")
    if not secret.isascii() or not secret.isprintable() or " " in secret:
        raise ConfigError("a token is made of printable ASCII characters without spaces")
    if match is None:
        return AccessToken(secret)
    return AccessToken(secret, frozenset(Scope(name) for name in match["scopes"].split("+")))


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
    token: tuple[AccessToken, ...] = ()
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
    notify: tuple[Webhook, ...] = field(default=(), repr=False)
    public_url: str | None = None  # of the pages, without a slash at its end
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

    def values(self) -> dict[str, str]:
        """Return what each setting is, as people read it; of what may hold a secret only that."""
        return {row.name: _value_text(row, getattr(self, row.name)) for row in SETTINGS}

    def differing(self, reported: Mapping[str, Any]) -> list[str]:
        """Return the settings that a running server was started with otherwise."""
        own = self.reported()
        return [name for name in _REPORTED if name in reported and reported[name] != own[name]]

    def of_server(self, reported: Mapping[str, Any]) -> Config:
        """Return it with what a running server says of its own settings."""
        of = {name: reported[name] for name in _REPORTED if name in reported}
        of.pop("short_tokens", None)
        return replace(self, **of)


@dataclass(frozen=True, slots=True)
class WebSettings:
    """Everything `create_app` needs to know beside the store and the pipeline."""

    tokens: tuple[AccessToken, ...] = ()
    allow_hosts: tuple[str, ...] = ()  # names beside localhost and the bound address
    bound_host: str = "127.0.0.1"
    http_address: str = "127.0.0.1:4318"  # as people should type it
    grpc_address: str | None = "127.0.0.1:4317"  # None: no gRPC endpoint in this process
    cors_origins: frozenset[str] = frozenset()  # "https://app.example": pages that may post OTLP
    secure_cookies: bool = False  # True behind TLS
    retention: str = "redacted_payloads"
    durability: str = "normal"
    policy: tuple[Path, ...] = ()  # files of rule sets, or shipped:NAME
    model_server: str | None = None  # OpenAI-compatible, for model calls of the sidecar
    script: Json | None = None  # of the scripted model, where the request brings none
    mcp: bool = True  # whether /mcp answers
    heads_copy: str | None = None  # folder for second copies of heads, or off
    decide: str = "principals"  # who may decide: principals, or anyone as in 0.1
    webhooks: tuple[Webhook, ...] = field(default=(), repr=False)  # of notifications
    outbound: bool = False  # whether they are sent
    recipients: tuple[str, ...] = ()  # of status reports
    report_escalation_ns: int = 24 * 3_600 * 10**9  # until a report waits for the next recipient
    values: Mapping[str, str] = field(default_factory=dict)  # of all settings, as people read them

    @property
    def decide_mode(self) -> DecideMode:
        """Who may decide, as the store has it."""
        return "principals" if self.needs_principal else "anyone"

    @property
    def needs_principal(self) -> bool:
        """Whether a decision needs a credential."""
        return self.decide != "anyone"


def _value_text(row: Setting, value: Any) -> str:
    if value is None or value == ():
        return "not set"
    if row.is_secret or row.name in _MAY_HOLD_SECRETS:
        return "set"
    if row.read in (read_duration_ns, _read_interval):
        return duration(value)
    if row.name == "max_disk":
        return file_size(value)
    parts = value if isinstance(value, tuple) else (value,)
    if all(isinstance(one, str | int | Path) for one in parts):
        return ", ".join(map(str, parts))
    return f"{len(value)} set" if isinstance(value, tuple) else str(value)


def is_loopback(host: str) -> bool:
    """Whether an address or name is this machine's own."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


# ---- reading one value


def _read_port(text: str) -> int:
    """Read a TCP port; 0 lets the system choose."""
    if not text.isascii() or not text.isdecimal() or int(text) > _MOST_PORT:
        raise ValueError(f"a port from 0 (any free one) to {_MOST_PORT}")
    return int(text)


def _read_attributes(text: str) -> int:
    is_number = text.isascii() and text.isdecimal() and len(text) < 10
    if not is_number or not LEAST_ATTRIBUTES <= int(text) <= MOST_ATTRIBUTES:
        raise ValueError(f"a number from {LEAST_ATTRIBUTES} to {MOST_ATTRIBUTES}")
    return int(text)


def _read_path(text: str) -> Path:
    if not text:
        raise ValueError("a path")
    return Path(text).expanduser()


def _read_interval(text: str) -> int | None:
    if text == "off":
        return None
    interval_ns = read_duration_ns(text)
    if interval_ns < _LEAST_INTERVAL_NS:
        raise ValueError("off, or a minute or more, such as 15m")
    return interval_ns


def _read_heads_copy(text: str) -> str:
    return text if text == "off" else str(_read_path(text))


def _read_host(text: str) -> str:
    if not text or re.search(r"[\s/]", text) or text.count(":") == 1:
        raise ValueError("an address without a port, such as 127.0.0.1 or 0.0.0.0")
    return text.removeprefix("[").removesuffix("]")


def read_rule_count(text: str) -> RuleNumber:
    """Read `repeated_errors=3`, or `3` for every rule."""
    rule, _, number = text.rpartition("=")
    if not number.isascii() or not number.isdecimal() or len(number) > 9:
        raise ValueError("a number, or a rule, = and a number, such as repeated_errors=3")
    return RuleNumber(rule, int(number))


def read_rule_window(text: str) -> RuleNumber:
    """Read `repeated_errors=48h`, or `48h` for every rule."""
    rule, _, length = text.rpartition("=")
    return RuleNumber(rule, read_duration_ns(length))


_read_size = partial(read_size_bytes, may_be_zero=False, example="20GB or 512MB")
_read_origin = matching(
    r"https?://[^/\s]+", "an origin without a path, such as https://app.example"
)
_read_server = matching(r"https?://[^\s]+", "an address, such as http://127.0.0.1:11434/v1")
_read_public_address = matching(
    r"https?://[!-~]+", "an address, such as https://traces.example.com"
)


def _read_public_url(text: str) -> str:
    return str(_read_public_address(text)).rstrip("/")


_read_webhook = matching(r"https?://[!-~]+", "an address, such as https://chat.example.com/hooks/1")
_WEBHOOK: Final = re.compile(
    rf"(?:(?P<subjects>(?:{'|'.join(SUBJECTS)})(?:\+(?:{'|'.join(SUBJECTS)}))*)=)?(?P<address>https?://[!-~]+)"
)


def _read_notify(text: str) -> Webhook:
    """Read `ADDRESS` (takes every notification) or `approval+chain=ADDRESS`."""
    match = _WEBHOOK.fullmatch(text)
    if match is None or not host_of(match["address"]):
        raise ConfigError(
            "give an address, such as https://chat.example.com/hooks/1, with what it is sent "
            f"before it where that is not everything: approval+chain=https://…; known are "
            f"{', '.join(SUBJECTS)}"
        )
    subjects = match["subjects"]
    return Webhook(match["address"], frozenset(subjects.split("+") if subjects else ()))


_read_recipient = matching(r"\S{1,200}", "a name without spaces, such as ana")


# ---- the table


def _row(
    name: str, read: Callable[[Any], Any], default: str, kind: str, sentence: str,
    *, is_list: bool = False, is_secret: bool = False,
) -> Setting:  # fmt: skip
    return Setting(
        name, read, (f"HANSARD_{name.upper()}",), default, kind, sentence, is_list, is_secret
    )


# fmt: off
SETTINGS: Final = (
    _row("data", _read_path, "the platform's user data folder", "path",
         "Folder that holds the database, blobs and key of one store."),
    _row("config", _read_path, f"{CONFIG_FILE} in the data folder, if it is there", "path",
         "TOML file with any of these settings."),
    _row("host", _read_host, "127.0.0.1", "address",
         "Address both ports listen on; any but a loopback one needs a token."),
    _row("http_port", _read_port, "4318", "port",
         "Port of OTLP/HTTP, the JSON API and the pages; 0 picks a free one."),
    _row("grpc_port", _read_port, "4317", "port",
         "Port of OTLP/gRPC; 0 picks a free one."),
    _row("socket", _read_path, "none", "path",
         "Unix socket (mode 0600) that offers what the HTTP port offers."),
    _row("token", parse_token, "none", "token",
         "Token that every request must carry; `ingest:SECRET` and `read+decide:SECRET` limit what "
         "it opens.", is_list=True, is_secret=True),
    _row("tls_cert", _read_path, "none", "path",
         "Certificate (PEM) for both ports."),
    _row("tls_key", _read_path, "none", "path",
         "Private key (PEM) of the certificate."),
    _row("cors_origin", _read_origin, "none", "origin",
         "Origin whose pages may send telemetry from a browser.", is_list=True),
    _row("allow_host", _read_host, "none", "name",
         "Host name that requests may use beside localhost and the bound address.", is_list=True),
    _row("retention", one_of(*RETENTIONS), "redacted_payloads", " | ".join(RETENTIONS),
         "How much content is stored: none, all but secrets, or everything."),
    _row("durability", one_of(*DURABILITIES), "normal", " | ".join(DURABILITIES),
         "What an acknowledged span survives: a crash of the process, or a power cut as well."),
    _row("policy", _read_path, "none", "path",
         "File of policy rules (JSON or YAML), or `shipped:NAME`; read again when it changes.",
         is_list=True),
    _row("model_server", _read_server, "none", "address",
         "Address of an OpenAI-compatible server that `POST /v1/model/call` may ask."),
    _row("script", _read_path, "none", "path",
         "Script (JSON) of the scripted model, for calls and replays that bring none."),
    _row("mcp", one_of(*SWITCHES), "on", " | ".join(SWITCHES),
         "Whether `/mcp` answers MCP clients (needs the extra `mcp`)."),
    _row("outbound", one_of(*SWITCHES), "off", " | ".join(SWITCHES),
         "Whether `hansard scan` and the heartbeat may ask a source of stories outside, and "
         "whether notifications are sent."),
    _row("decide", one_of(*DECIDERS), "principals", " | ".join(DECIDERS),
         "Who may decide about approvals, tasks and memory: holders of a token, or anyone who "
         "reaches the server."),
    _row("keep", read_duration_ns, "for ever", "duration",
         "Runs that received nothing for this long are deleted; pinned ones stay."),
    _row("max_disk", _read_size, "no limit", "size",
         "The oldest runs are deleted when the store is larger than this; pinned ones stay."),
    _row("max_attributes", _read_attributes, str(USUAL_LIMITS.attributes), "number",
         "Attributes, events or links that one span may have; one with more is rejected singly."),
    _row("heads_copy", _read_heads_copy, "the platform's user state folder", "path | off",
         "Folder for second copies of the audit log's head, a small file per store; programs with "
         "a gate of their own take it from the environment."),
    _row("heartbeat", _read_interval, "off", "duration | off",
         "How often a server runs a cycle of the heartbeat, such as 15m."),
    _row("heartbeat_window", read_duration_ns, "24h", "duration",
         "How far back a cycle of the heartbeat compares claims with what happened."),
    _row("scan_url", _read_server, "the source's own", "address",
         "Address of the API that `hansard scan` and the heartbeat ask for stories: a mirror's."),
    _row("classifier", parse_classifier, "offline", "[TASK=]offline | off | PROVIDER:MODEL",
         "What classifies stories, contradictions and commands; behind `TASK=` for one of `topic`, "
         "`contradiction`, `irreversible` alone.", is_list=True),
    _row("embedder", parse_embedder, "offline", "offline | wordllama | off | PROVIDER:MODEL",
         "What compares texts by meaning; `wordllama` needs the extra `embeddings`."),
    _row("extractor", parse_choice, "offline", "offline | off | PROVIDER:MODEL",
         "What finds the topics of recent memory that become interests."),
    _row("recipients", _read_recipient, "none", "name",
         "Who reads status reports: the first one, then the next when nobody acknowledged it.",
         is_list=True),
    _row("report_every", read_duration_ns, "24h", "duration",
         "How often the heartbeat writes a status report; sooner when a review was opened."),
    _row("report_escalation", read_duration_ns, "24h", "duration",
         "How long a report waits for one recipient before it waits for the next one."),
    _row("report_webhook", _read_webhook, "none", "address",
         "Address that the heartbeat sends each new report to, as JSON: a chat program's webhook.",
         is_secret=True),
    _row("notify", _read_notify, "none", "[SUBJECT+SUBJECT=]address",
         "Webhook that notifications are sent to while `outbound` is on; behind "
         "`approval+chain=` only those of these subjects.", is_list=True, is_secret=True),
    _row("public_url", _read_public_url, "the server's own address", "address",
         "Address of the pages, as people reach them: for links in notifications."),
    _row("detect_threshold", read_rule_count, "each rule's own", "[rule=]number",
         "How often makes a pattern of the detector.", is_list=True),
    _row("detect_window", read_rule_window, "each rule's own", "[rule=]duration",
         "Within what time that makes a pattern.", is_list=True),
    _row("detect_min_cases", read_rule_count, "each rule's own", "[rule=]number",
         "How many cases a rule about a share needs before it judges.", is_list=True),
    _row("stale_after", read_duration_ns, "30d", "duration",
         "After how long without a retrieval maintenance counts a memory as stale."),
    _row("evidence", _read_path, "none", "path",
         "File (TOML) that says which results of tools are evidence of success, and what is said "
         "of them."),
)
# fmt: on
_BY_NAME: Final = {setting.name: setting for setting in SETTINGS}


def setting(name: str) -> Setting:
    """Return a row of the table."""
    return _BY_NAME[name]


# ---- finding the values


def load_config(arguments: Mapping[str, Any], environment: Mapping[str, str]) -> Config:
    """Return the configuration; absent arguments are None or ().

    Raises ConfigError for a value that cannot be meant, naming where it was found.
    """
    found = find_settings(SETTINGS, arguments, environment, argument=_read_argument, variable=_read)
    _add_file(found)
    values = {name: one.value for name, one in found.items()}
    config = Config(**{"data": values.pop("data", None) or _default_data(), **values})
    _check(config)
    return config


def data_folder(argument: str | None, environment: Mapping[str, str]) -> Path:
    """Return the data folder as every command finds it."""
    return load_config({"data": argument}, environment).data


def _default_data() -> Path:
    try:
        return default_data_folder()
    except RuntimeError as error:  # a container's user that is in no passwd
        raise ConfigError(f"{error}; or name the folder: --data or HANSARD_DATA") from None


def _add_file(found: dict[str, Found]) -> None:
    named = found["config"].value if "config" in found else None
    path = named or (found["data"].value if "data" in found else _default_data()) / CONFIG_FILE
    if named is None and not _is_there(path):
        return

    def unknown(name: str) -> None:
        raise ConfigError(f"{path}: {name!r} is no setting{_closest(name)}")

    table = {
        name: value
        for name, value in _read_file(path).items()
        if name != FILE_TABLE or not isinstance(value, dict)  # that is for programs that send
    }
    add_from_file(found, table, path, rows=_BY_NAME, read=_read, unknown=unknown)


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


def _read_argument(row: Setting, raw: Any, _: str) -> Any:
    return _read(row, raw, row.flag)


def _read(row: Setting, raw: Any, source: str) -> Any:
    if not row.is_list:
        return _read_one(row, raw, source)
    # In the environment values are apart by spaces, which no token, name or origin contains.
    values = raw.split() if isinstance(raw, str) else raw
    if not isinstance(values, list | tuple):
        raise ConfigError(f"{source} is {raw!r}; expected a list of texts")
    return tuple(_read_one(row, value, source) for value in values)


def _read_one(row: Setting, raw: Any, source: str) -> Any:
    is_number = isinstance(raw, int) and not isinstance(raw, bool)
    text = str(raw) if is_number else raw
    try:
        if not isinstance(text, str):
            raise ValueError(row.kind)
        return row.read(text)
    except ValueError as error:
        raise ConfigError(
            f"{source}: {shown(row, raw)} is no {row.kind}; expected {error}"
        ) from None
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


# ---- what settings name


def judges_of(config: Config) -> Judges:
    """Return the classifier, the embedder and the extractor of a configuration.

    Keys of providers come from the environment. Nothing is sent here.
    """
    from hansard_collector.judges import JudgeSettings, judges_from  # most commands judge nothing

    return judges_from(
        JudgeSettings(
            classifier=config.classifier,
            embedder=config.embedder,
            extractor=config.extractor,
            model_server=config.model_server,
            script=config.script,
            environment=os.environ,
        )
    )


def judge_arguments(config: Config) -> Iterator[tuple[str, str]]:
    """Yield the flags that give another process the same judges, with their values."""
    for name in JUDGE_SETTINGS:
        value = getattr(config, name)
        for one in value if isinstance(value, tuple) else (value,):
            if one is not None:
                yield setting(name).flag, str(one)


def script_in(path: Path | None) -> Json | None:
    """Return the script of a file, None without one. Raises ConfigError for what is none."""
    if path is None:
        return None
    from hansard_compiler.providers.scripted import read_script

    try:
        text = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"script {path}: {error.strerror or error}") from None
    try:
        read_script(text)
    except ConfigError as error:
        raise ConfigError(f"script {path}: {error}") from None
    found: Json = orjson.loads(text)
    return found


assert {row.name for row in SETTINGS} == {field.name for field in fields(Config)}
