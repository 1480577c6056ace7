"""Every setting of the SDK in one table, and how a value is found for it.

Precedence: argument, environment (ours, then OpenTelemetry's), file (`[sdk]` in hansard.toml),
default. Read once by `init()`; nothing else of the SDK reads the environment.

An argument that cannot be meant is a ConfigError: its author is looking. A variable or a file
is not worth stopping a program for: it is logged once and the default applies, but for `retention`,
where the strictest mode does.
"""

from __future__ import annotations

import os
import tempfile
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from hansard._config import setting as values
from hansard._config.setting import (
    CONFIG_FILE,
    FILE_TABLE,
    PASSED_OVER,
    Found,
    Setting,
    add_from_file,
    default_data_folder,
    find_settings,
    shown,
)
from hansard_compiler.errors import ConfigError
from hansard_compiler.retention_modes import RetentionMode

_GRPC_PORT: Final = 4317
_EMBEDDED_EXIT_MS: Final = 30_000
_HTTP_ENDPOINT: Final = "http://127.0.0.1:4318"
_GRPC_ENDPOINT: Final = "http://127.0.0.1:4317"
_SIGNAL_PATHS: Final = ("/v1/traces", "/v1/logs")
_OTLP: Final = "OTEL_EXPORTER_OTLP_"


@dataclass(frozen=True, slots=True)
class Settings:
    """What the SDK runs with; the fields are the rows of SETTINGS, but for the last three."""

    data: Path
    config: Path | None = None
    endpoint: str = _HTTP_ENDPOINT  # base address: scheme, host, port and a path prefix if any
    traces_endpoint: str = f"{_HTTP_ENDPOINT}/v1/traces"  # the exporter's arguments
    logs_endpoint: str = f"{_HTTP_ENDPOINT}/v1/logs"
    http_endpoint: str | None = None  # where large payloads are uploaded
    protocol: str = values.HTTP  # "http/protobuf" or "grpc"
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)  # with authorization
    token: str | None = field(default=None, repr=False)
    timeout_s: float = 10.0
    compression: str = "none"  # or "gzip", "deflate"
    service_name: str | None = None
    retention: RetentionMode = RetentionMode.REDACTED_PAYLOADS
    embedded: bool = False
    export_delay_ms: int = 500
    export_timeout_ms: int = 30_000
    max_queue_spans: int = 8_192
    max_batch_spans: int = 512
    exit_timeout_ms: int = 2_000
    spool_max_bytes: int = 256 << 20
    keepalive_interval_ms: int = 10_000
    capture_max_bytes: int = 16 << 20
    hook_threshold: float = 0.75
    hook_classifier: str | None = None
    hook_classifier_timeout_ms: int = 10_000
    hook_timeout_ms: int = 2_000
    hook_record: bool = True
    continue_trace: bool = False
    disabled: bool = False
    resource_attributes: Mapping[str, str] = field(default_factory=dict)
    sampler: str | None = None  # this and the next two are read by OpenTelemetry's SDK itself
    sampler_arg: str | None = None
    propagators: str | None = None
    sources: Mapping[str, str] = field(default_factory=dict, compare=False)
    problems: tuple[str, ...] = field(default=(), compare=False)  # values that cannot be meant
    # What `init()` was called with, unparsed: a worker process calls it with the same again.
    arguments: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)

    @property
    def destination(self) -> str:
        """Where telemetry goes, for people to read."""
        return f"the store in {self.data}" if self.embedded else self.endpoint


def _row(
    name: str, read: Callable[[Any], Any], default: str, kind: str, sentence: str, *env: str
) -> Setting:
    is_secret = name in ("token", "headers")
    return Setting(name, read, env, default, kind, sentence, is_secret=is_secret)


# fmt: off
SETTINGS: Final = (
    _row("data", values.read_path, "the platform's user data folder", "path",
         "Folder of the spool and of the key that redaction fingerprints are made with; the "
         "server's, when both run on one machine.", "HANSARD_DATA"),
    _row("config", values.read_path, f"{CONFIG_FILE} in the data folder, if it is there", "path",
         "TOML file with any of these settings in its table `[sdk]`.", "HANSARD_CONFIG"),
    _row("endpoint", values.read_url, _HTTP_ENDPOINT, "address",
         "Where telemetry goes, without the signal's path.",
         "HANSARD_ENDPOINT", _OTLP + "ENDPOINT"),
    _row("traces_endpoint", values.read_url, "the endpoint and /v1/traces", "address",
         "Where spans go, taken as it is.", _OTLP + "TRACES_ENDPOINT"),
    _row("logs_endpoint", values.read_url, "the endpoint and /v1/logs", "address",
         "Where payloads, keepalives and counts of drops go, taken as it is.",
         _OTLP + "LOGS_ENDPOINT"),
    _row("http_endpoint", values.read_url, "the endpoint, with protocol http/protobuf", "address",
         "Hansard's HTTP address, for uploads of payloads over 1 MiB. Only where spans do not go "
         "there themselves: by gRPC, or through another collector.", "HANSARD_HTTP_ENDPOINT"),
    _row("protocol", values.read_protocol, "http/protobuf; grpc for port 4317", "protocol",
         "Which of the two stock OTLP exporters sends.",
         "HANSARD_PROTOCOL", _OTLP + "TRACES_PROTOCOL", _OTLP + "PROTOCOL"),
    _row("headers", values.read_headers, "none", "name=value,…",
         "Headers, or gRPC metadata, of every request.",
         "HANSARD_HEADERS", _OTLP + "TRACES_HEADERS", _OTLP + "HEADERS"),
    _row("token", values.read_token, "none", "token",
         "The server's token, sent as `authorization: Bearer …`.", "HANSARD_TOKEN"),
    _row("timeout_s", values.read_seconds, "10", "seconds",
         "How long one request may take.", _OTLP + "TRACES_TIMEOUT", _OTLP + "TIMEOUT"),
    _row("compression", values.read_compression, "none", "none, gzip, deflate",
         "What request bodies are compressed with.",
         _OTLP + "TRACES_COMPRESSION", _OTLP + "COMPRESSION"),
    _row("service_name", values.read_text, "the script's name, or the package's that "
         "`-m` runs; OpenTelemetry's `unknown_service:…` at a prompt", "text",
         "`service.name` of the resource.", "HANSARD_SERVICE_NAME", "OTEL_SERVICE_NAME"),
    _row("retention", values.read_retention, "redacted_payloads", ", ".join(RetentionMode),
         "How much content leaves the program: none, all but secrets, or everything.",
         "HANSARD_RETENTION"),
    _row("embedded", values.read_flag, "false", "flag",
         "Store in this process instead of sending: no server is needed.", "HANSARD_EMBEDDED"),
    _row("export_delay_ms", values.at_least(1), "500", "ms",
         "How long a finished span waits for others before it is sent.",
         "HANSARD_EXPORT_DELAY_MS", "OTEL_BSP_SCHEDULE_DELAY"),
    _row("export_timeout_ms", values.at_least(1), "30000", "ms",
         "How long one batch may take, retries included.", "OTEL_BSP_EXPORT_TIMEOUT"),
    _row("max_queue_spans", values.at_least(1), "8192", "spans",
         "How many finished spans wait in memory at most.", "OTEL_BSP_MAX_QUEUE_SIZE"),
    _row("max_batch_spans", values.at_least(1), "512", "spans",
         "How many spans one request holds at most.", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE"),
    _row("exit_timeout_ms", values.at_least(0), "2000", "ms",
         "How long the end of the program waits for the last spans to be sent, with `embedded` "
         "30000; what is left is spooled.", "HANSARD_EXIT_TIMEOUT_MS"),
    _row("spool_max_bytes", values.read_size_bytes, "256MB", "size",
         "How much the disk spool holds at most; the oldest is dropped and counted.",
         "HANSARD_SPOOL_MAX_BYTES"),
    _row("keepalive_interval_ms", values.at_least(100), "10000", "ms",
         "How often a program with open spans reports that it is alive.",
         "HANSARD_KEEPALIVE_INTERVAL_MS"),
    _row("capture_max_bytes", values.read_size_bytes, "16MB", "size",
         "How much of one argument list or result is kept; the rest is cut and marked.",
         "HANSARD_CAPTURE_MAX_BYTES"),
    _row("hook_threshold", values.read_share, "0.75", "0 to 1",
         "Score from which `hansard hook pre-tool-use` warns.", "HANSARD_HOOK_THRESHOLD"),
    _row("hook_classifier", values.read_text, "the server's setting `classifier`",
         "rules, off, module:name",
         "What scores calls before they are made: the rules; a classifier that "
         "`package.module:name` is or makes, called where the rules are unsure; or nothing.",
         "HANSARD_HOOK_CLASSIFIER"),
    _row("hook_classifier_timeout_ms", values.at_least(1), "10000", "ms",
         "How long a classifier that is not the rules may take; then the rules' score stands.",
         "HANSARD_HOOK_CLASSIFIER_TIMEOUT_MS"),
    _row("hook_timeout_ms", values.at_least(1), "2000", "ms",
         "How long a hook may take to read and score an event; then it says nothing.",
         "HANSARD_HOOK_TIMEOUT_MS"),
    _row("hook_record", values.read_flag, "true", "flag",
         "Whether hooks record what they see.", "HANSARD_HOOK_RECORD"),
    _row("continue_trace", values.read_flag, "false", "flag",
         "Goes on with the trace that `TRACEPARENT` and `BAGGAGE` name, as "
         "`hansard.child_environment` sets them for a child process.", "HANSARD_CONTINUE_TRACE"),
    _row("disabled", values.read_disabled, "false", "flag",
         "Switches the SDK off: decorators call straight through.", "OTEL_SDK_DISABLED"),
    _row("sampler", values.read_text, "parentbased_always_on", "text",
         "Which traces are recorded; read by OpenTelemetry's SDK.", "OTEL_TRACES_SAMPLER"),
    _row("sampler_arg", values.read_text, "none", "text",
         "The sampler's argument; read by OpenTelemetry's SDK.", "OTEL_TRACES_SAMPLER_ARG"),
    _row("propagators", values.read_text, "tracecontext,baggage", "text",
         "How context crosses to other processes; read by OpenTelemetry.", "OTEL_PROPAGATORS"),
    _row("resource_attributes", values.read_pairs, "none", "name=value,…",
         "Further attributes of the resource.", "OTEL_RESOURCE_ATTRIBUTES"),
)
# fmt: on
# OpenTelemetry's SDK reads these from the environment alone: a file could not make them true.
_ENVIRONMENT_ONLY: Final = frozenset({"disabled", "sampler", "sampler_arg", "propagators"})
_IN_FILE: Final = {row.name: row for row in SETTINGS if row.name not in _ENVIRONMENT_ONLY}
# What cannot be read meant to store less, or more; less can be put right.
_LEAST: Final = RetentionMode.METADATA_ONLY


# ---- finding the values


def load_settings(
    arguments: Mapping[str, Any] | None = None, environment: Mapping[str, str] | None = None
) -> Settings:
    """Return the settings; an argument that is None is not set.

    Raises ConfigError for an argument that cannot be meant. Values of the environment and the file
    that cannot are named in `problems`.
    """
    environment = os.environ if environment is None else environment
    arguments = _without_nulls(arguments or {})
    problems: list[str] = []
    lenient = partial(_lenient, problems)
    found = find_settings(SETTINGS, arguments, environment, argument=_strict, variable=lenient)
    data = found["data"].value if "data" in found else _data_folder(problems)
    _add_file(found, data, problems)
    _settle_endpoints(found)
    if "exit_timeout_ms" not in found and "embedded" in found and found["embedded"].value:
        # No peer is missing here: what takes longer is a busy machine, and it gets there.
        found["exit_timeout_ms"] = Found(_EMBEDDED_EXIT_MS, "default with embedded", 4)
    _add_authorization(found)
    values: dict[str, Any] = {"data": data} | {name: one.value for name, one in found.items()}
    return Settings(
        **values,
        sources={
            row.name: found[row.name].source if row.name in found else "default" for row in SETTINGS
        },
        problems=tuple(problems),
        arguments=arguments,
    )


def _without_nulls(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments that are not None, in types that cross to another process."""
    return {
        name: dict(value) if isinstance(value, Mapping) else value
        for name, value in arguments.items()
        if value is not None
    }


def _data_folder(problems: list[str]) -> Path:
    try:
        return default_data_folder()
    except RuntimeError as error:
        folder = Path(tempfile.mkdtemp(prefix="hansard-"))  # for this process, and nobody else's
        problems.append(f"{error}; what waits to be sent is in {folder} now: set HANSARD_DATA")
        return folder


def _add_file(found: dict[str, Found], data: Path, problems: list[str]) -> None:
    named = found["config"].value if "config" in found else None
    path = named or data / CONFIG_FILE
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        if named is not None:
            problems.append(f"{path} does not exist; it is passed over")
        return
    except OSError as error:
        problems.append(f"cannot read {path}: {error}; it is passed over")
        return
    except ValueError as error:  # it may have said what is not to be stored
        problems.append(f"cannot read {path}: {error}; retention is {_LEAST} unless set elsewhere")
        found.setdefault("retention", Found(_LEAST, f"file {path}", 3))
        return
    table = content.get(FILE_TABLE, {})

    def unknown(name: str) -> None:
        problems.append(f"{path}: {name!r} is no setting of [{FILE_TABLE}]; it is passed over")

    add_from_file(
        found,
        table if isinstance(table, dict) else {},
        path,
        rows=_IN_FILE,
        read=partial(_lenient, problems),
        unknown=unknown,
    )


def _strict(row: Setting, raw: Any, where: str) -> Any:
    try:
        return row.read(raw)
    except ValueError as error:
        raise ConfigError(_refused(row, where, raw, error)) from None


def _lenient(problems: list[str], row: Setting, raw: Any, where: str) -> Any:
    try:
        return row.read(raw)
    except ValueError as error:
        refused = _refused(row, where, raw, error)
    if row.name == "retention":
        problems.append(f"{refused}; {_LEAST} stands in")
        return _LEAST
    problems.append(f"{refused}; it is passed over")
    return PASSED_OVER


def _refused(row: Setting, where: str, raw: Any, error: ValueError) -> str:
    return f"{where}: {shown(row, raw)} is not {error}"


# ---- endpoints


def _settle_endpoints(found: dict[str, Found]) -> None:
    """Make the three addresses and the protocol agree, whichever of them are set.

    OpenTelemetry: a signal's own address is taken as it is, the common one gets the signal's path;
    gRPC has no paths. A common address that is set more directly than a signal's beats it.
    """
    base = found.get("endpoint")
    for name in ("traces_endpoint", "logs_endpoint"):
        own = found.get(name)
        if own is not None and base is not None and base.level < own.level:
            del found[name]
    traces = found.get("traces_endpoint")
    if base is None and traces is not None:
        base = Found(traces.value, traces.source, traces.level)
    if "protocol" not in found and base is not None and urlsplit(base.value).port == _GRPC_PORT:
        found["protocol"] = Found(values.GRPC, "default for port 4317", 4)
    is_grpc = "protocol" in found and found["protocol"].value == values.GRPC
    if base is None:
        base = Found(_GRPC_ENDPOINT if is_grpc else _HTTP_ENDPOINT, "default", 4)
    address = base.value
    for path in _SIGNAL_PATHS:
        address = address.removesuffix(path)
    found["endpoint"] = Found(address, base.source, base.level)
    for name, path in zip(("traces_endpoint", "logs_endpoint"), _SIGNAL_PATHS, strict=True):
        if name not in found:
            derived = address if is_grpc else address + path
            found[name] = Found(derived, base.source, base.level)


def _add_authorization(found: dict[str, Found]) -> None:
    """Turn the token into a header; a header that is set explicitly stays."""
    token, headers = found.get("token"), found.get("headers")
    if token is None or (headers is not None and "authorization" in headers.value):
        return
    existing = {} if headers is None else dict(headers.value)
    header = {"authorization": f"Bearer {token.value}"}
    source = token.source if headers is None else headers.source
    found["headers"] = Found(existing | header, source, token.level)


assert {row.name for row in SETTINGS} | {"sources", "problems", "arguments"} == {
    one.name for one in fields(Settings)
}
