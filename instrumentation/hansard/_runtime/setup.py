"""Starting and ending the SDK: `init`, `flush`, `shutdown`."""

from __future__ import annotations

import atexit
import inspect
import logging
import os
import secrets
import threading
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast
from weakref import WeakSet

from hansard import semconv
from hansard._config.settings import Settings, load_settings
from hansard._export.secret_scanner import ForkSafeRedactor
from hansard._runtime import recorder as _state
from hansard._runtime.data_folder import read_or_make_key
from hansard._runtime.durations import Duration, seconds
from hansard._runtime.recorder import Recorder, active
from hansard._tracing import workers
from hansard._tracing.propagation import continue_environment
from hansard.errors import EmbeddedMissing
from hansard_compiler.errors import ConfigError
from hansard_compiler.retention_modes import RetentionMode

if TYPE_CHECKING:
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider

_log = logging.getLogger("hansard")
# Held while a recorder is made or taken down, by whichever threads call init() and shutdown().
_lock = threading.RLock()
_ours: WeakSet[TracerProvider] = WeakSet()  # providers made here


def init(
    *,
    endpoint: str | None = None,
    protocol: str | None = None,
    service_name: str | None = None,
    retention: RetentionMode | str | None = None,
    embedded: bool | None = None,
    data: str | Path | None = None,
    headers: Mapping[str, str] | None = None,
    token: str | None = None,
    timeout_s: Duration | None = None,
    compression: str | None = None,
    resource_attributes: Mapping[str, str] | None = None,
    export_delay_s: Duration | None = None,
    exit_timeout_s: Duration | None = None,
    spool_max_bytes: int | None = None,
    continue_trace: bool | None = None,
    config: str | Path | None = None,
) -> Recorder | None:
    """Start recording, and return the recorder; None when `OTEL_SDK_DISABLED` is true.

    An OpenTelemetry SDK that is set up already stays: this adds a processor to its provider.
    An argument that is None is read from the environment (`HANSARD_…`, then `OTEL_…`), in
    `hansard.toml`, or has its default: `docs/configuration.md`. A second call changes nothing; it
    warns if its settings differ.

    Durations are seconds or a timedelta. Raises ConfigError for an argument that cannot work, and
    nothing else: if recording cannot start, that is logged on the logger `hansard`, and the
    program runs without.
    """
    arguments = dict(locals())  # of this call, by name
    settings = _with_embedded_checked(_settings_of(arguments))
    with _lock:
        running = active()
        if running is not None:
            _compare(running.settings, settings)
            return running
        _state.remember(settings)
        if settings.disabled:
            return None
        for problem in settings.problems:
            _log.warning("%s", problem)
        recorder = _try_to_make(settings)
        if recorder is None:
            return None
        _state.install(recorder)
        _register_once()
        workers.finish_if_worker()
        if settings.continue_trace:
            continue_environment()
        return recorder


def check_arguments(options: Mapping[str, object]) -> None:
    """Raise what `init(**options)` would raise for them: TypeError for a name, ConfigError."""
    inspect.signature(init).bind(**options)
    _settings_of(options)


# Durations of `init()` are seconds; the settings are milliseconds, as OpenTelemetry's variables.
_MS_SETTINGS: Final = {"export_delay_s": "export_delay_ms", "exit_timeout_s": "exit_timeout_ms"}


def _settings_of(arguments: Mapping[str, Any]) -> Settings:
    """Return the settings for arguments of `init()`. Raises ConfigError."""
    named: dict[str, Any] = dict(arguments)
    try:
        if isinstance(named.get("timeout_s"), timedelta):
            named["timeout_s"] = seconds(named["timeout_s"], "timeout_s")
        for name, setting in _MS_SETTINGS.items():
            duration = named.pop(name, None)
            if duration is not None:
                named[setting] = round(seconds(duration, name) * 1_000)
    except (TypeError, ValueError, OverflowError) as error:
        raise ConfigError(str(error)) from None
    # A worker process calls `init()` with the arguments that this process's had.
    return replace(
        load_settings(named),
        arguments={name: one for name, one in arguments.items() if one is not None},
    )


def flush(timeout_s: Duration = 10.0) -> bool:
    """Send what was recorded so far; False if not all of it was sent in time."""
    recorder = active()
    if recorder is None or recorder.exporter is None:
        return True
    return recorder.exporter.force_flush(round(seconds(timeout_s, "timeout_s") * 1000))


def shutdown(timeout_s: Duration | None = None) -> None:
    """Send what is left, spool what cannot be sent, and stop recording.

    Waits at most `timeout_s`, or the setting `exit_timeout_ms`. Decorated functions go on working;
    `init()` may be called again. It runs at the end of the program.
    """
    with _lock:
        recorder = active()
        _close_what_is_open()
        _state.remember(None)
        if recorder is None:
            return
        _state.install(None)
        if recorder.exporter is not None:
            limit_ms = recorder.settings.exit_timeout_ms
            if timeout_s is not None:
                limit_ms = round(seconds(timeout_s, "timeout_s") * 1000)
            recorder.exporter.close(limit_ms)


def _close_what_is_open() -> None:
    for close in _state.before_shutdown:
        try:
            close()
        except Exception as error:
            _log.warning("something was not closed: %s: %s", type(error).__name__, error)


def _with_embedded_checked(settings: Settings) -> Settings:
    """Raise EmbeddedMissing for an argument of the program; a variable or file is ignored."""
    if not settings.embedded or settings.disabled:
        return settings
    from hansard._backend.protocol import embedded_parts

    try:
        embedded_parts()
    except EmbeddedMissing as error:
        source = settings.sources["embedded"]
        if source == "argument":
            raise
        _log.warning("%s: %s; it is ignored", source, error)
        return replace(settings, embedded=False)
    return settings


def _compare(running: Settings, settings: Settings) -> None:
    if settings != running and not settings.disabled:
        _log.warning(
            "hansard.init() was called again with other settings; the first ones stay in force. "
            "Call hansard.shutdown() before it to change them."
        )


# ---- the parts of a recorder


def _try_to_make(settings: Settings) -> Recorder | None:
    try:
        return _make_recorder(settings)
    except Exception:  # a variable that OpenTelemetry itself chokes on, a broken installation
        _log.exception("recording cannot start; the program runs without")
        return None


def _make_recorder(settings: Settings) -> Recorder:
    from hansard import __version__
    from hansard._export.processor import register

    provider = _provider_for(settings)
    recorder = Recorder(
        settings=settings,
        provider=provider,
        tracer=provider.get_tracer(semconv.SCOPE_NAME, __version__, semconv.SCHEMA_URL),
        redactor=ForkSafeRedactor(_key_of(settings)),
        instance_id=instance_id_of(provider.resource),
    )
    _add_parts(recorder)
    register(provider, stop=shutdown)
    return recorder


def _add_parts(recorder: Recorder) -> None:
    """Add exporter and payload store: with their imports, the larger part of starting."""
    from hansard._export.payload_writer import PayloadWriter
    from hansard._export.processor import SpanPipeline
    from hansard._tracing.serialization import encoder

    encoder()
    recorder.exporter = pipeline = SpanPipeline(
        recorder.settings,
        recorder.provider.resource,
        instance_id=recorder.instance_id,
        redactor=recorder.redactor,
    )
    recorder.payloads = PayloadWriter(recorder.settings, recorder.redactor, pipeline.spool)


def _key_of(settings: Settings) -> bytes:
    try:
        return read_or_make_key(settings.data)
    except OSError as error:
        _log.warning(
            "cannot use the data folder %s (%s): nothing is spooled while the collector is away, "
            "and redaction marks compare within this program only",
            settings.data,
            error.strerror,
        )
        return secrets.token_bytes(32)


def _provider_for(settings: Settings) -> TracerProvider:
    """Return the application's provider if it takes processors, else a new one, set globally."""
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider

    from hansard._runtime.resources import resource_of

    present = trace.get_tracer_provider()
    is_ours = present in _ours
    if callable(getattr(present, "add_span_processor", None)) and not is_ours:
        provider = cast(TracerProvider, present)
        _compare_names(provider, settings)
        return provider
    resource = resource_of(settings)
    for made_before in _ours:
        if made_before.resource == resource:
            return made_before
    # Ended by `shutdown` here, in bounded time; not by a hook of its own.
    ours = TracerProvider(resource=resource, shutdown_on_exit=False)
    _ours.add(ours)
    if is_ours:
        # A global provider stays for good. What others record goes on through it, under the name
        # of the first `init()`; what is recorded here has the new one's.
        return ours
    if isinstance(present, trace.ProxyTracerProvider):
        trace.set_tracer_provider(ours)
    else:
        _log.warning(
            "the global tracer provider is a %s, which takes no span processors: only hansard's "
            "own spans are recorded",
            type(present).__qualname__,
        )
    return ours


def _compare_names(provider: TracerProvider, settings: Settings) -> None:
    """Log that the application's provider has another service name than the settings."""
    name = provider.resource.attributes.get(semconv.SERVICE_NAME)
    source = settings.sources["service_name"]
    if settings.service_name not in (None, name) and source != "environment OTEL_SERVICE_NAME":
        _log.warning(
            "service_name (%s) is ignored: the program has a tracer provider with its own "
            "resource, and the name there is %r",
            source,
            name,
        )


def instance_id_of(resource: Resource) -> str:
    """Return `service.instance.id`; a random one where the application's resource has none."""
    return str(resource.attributes.get(semconv.SERVICE_INSTANCE_ID) or secrets.token_hex(16))


# ---- the end of the process, and its forks

_registered = False


def _register_once() -> None:
    global _registered
    if _registered:
        return
    _registered = True
    atexit.register(shutdown)
    if hasattr(os, "register_at_fork"):
        # Registered after the provider's own hook, which gives the child another instance id.
        os.register_at_fork(after_in_child=_after_fork_in_child)


def _after_fork_in_child() -> None:
    """Give the child threads, queues and an id of its own: the parent sends its own spans."""
    global _lock
    _lock = threading.RLock()
    recorder = active()
    if recorder is None:
        return
    recorder.instance_id = instance_id_of(recorder.provider.resource)
    if recorder.exporter is not None:
        recorder.exporter.after_fork(recorder.provider.resource, recorder.instance_id)
    workers.after_fork_in_child()
