"""The one recorder of this process, which `init()` makes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Tracer

    from hansard._config.settings import Settings
    from hansard._export.processor import SpanPipeline
    from hansard_compiler.redaction.redactor import Redactor


class PayloadSink(Protocol):
    """Where bytes go that are too large for an attribute; see `hansard._export.payload_writer`."""

    def put(self, data: bytes, *, media_type: str, is_clean: bool = False) -> str:
        """Return `sha256:<hex>`, or "" if nothing is stored. Never raises.

        `is_clean`: the caller has redacted them already.
        """


@dataclass(slots=True, repr=False)
class Recorder:
    """The state of recording, which `init()` returns: one a process, in a fork with new threads."""

    __module__ = "hansard"  # where programs find it

    settings: Settings
    provider: TracerProvider  # the application's own if it had one, else ours, set globally
    tracer: Tracer
    redactor: Redactor
    instance_id: str  # service.instance.id of this process; another one after a fork
    payloads: PayloadSink | None = None
    exporter: SpanPipeline | None = None  # None: nothing is sent (a test reads the provider)

    def __repr__(self) -> str:
        """One line for a prompt: `init()` is the first thing that is typed there."""
        service = self.provider.resource.attributes.get("service.name")
        return f"<hansard.Recorder service={str(service)!r} to={self.settings.destination!r}>"


_recorder: Recorder | None = None
before_shutdown: list[Callable[[], None]] = []  # called while spans can still be ended


def active() -> Recorder | None:
    """Return the recorder, or None before `init()`, after `shutdown()` or when switched off."""
    return _recorder


def install(recorder: Recorder | None) -> None:
    """Make this the process's recorder; None switches recording off."""
    global _recorder
    _recorder = recorder


# The settings of `init()`. They stay when recording is switched off: a gate does not depend on it.
_settings: Settings | None = None


def settings() -> Settings | None:
    """Return the settings of `init()`, or None before it and after `shutdown()`."""
    return _settings


def remember(settings_of_init: Settings | None) -> None:
    """Store the settings for what works without a recorder."""
    global _settings
    _settings = settings_of_init
