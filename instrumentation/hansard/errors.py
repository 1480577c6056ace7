"""Every error the SDK raises on purpose.

HansardError
└── InstrumentationError   something the program asked of the SDK that it cannot do
    ├── NotStarted           `hansard.init()` was not called, or the SDK is switched off
    ├── NotDecoratable       what a decorator was put on is no function
    ├── AsyncCallback        an async function where a plain one is called
    ├── MemoryRefused        memory that may not be written, read or ended as it was asked
    ├── MemoryUnavailable    the memory's store or server is away, or has no room
    ├── SpoolError           the disk spool cannot be read or written
    ├── PayloadError         a payload cannot be found, or is not what its digest says
    ├── ReplayUnavailable    nobody who makes replays can be reached
    ├── TranscriptUnavailable  no transcript can be read or written now
    └── GateError …          a gate did not let a call through: gating/errors.py
ConfigError
└── EmbeddedMissing        `embedded=True`, and the packages for it are not installed

Only what a program asks for in so many words can raise. Observing never does: what goes wrong while
a span is made, kept or sent is counted and told once on the logger `hansard`.
A setting that cannot work is a ConfigError (hansard_compiler.errors).
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping

from hansard_compiler.errors import ConfigError, HansardError


class InstrumentationError(HansardError):
    """Something the program asked of the SDK that it cannot do."""

    code = "instrumentation"


class NotStarted(InstrumentationError):
    """The call needs a running SDK."""

    code = "not_started"

    def __init__(self, wanted: str) -> None:
        super().__init__(f"{wanted} needs hansard.init() first (and no OTEL_SDK_DISABLED=true)")
        self.wanted = wanted


class NotDecoratable(InstrumentationError, TypeError):
    """A decorator was put on something that is no function."""

    code = "not_decoratable"

    def __init__(self, decorator: str, found: object, *, why: str | None = None) -> None:
        told = f"options go by name: @hansard.{decorator}(name=…)" if why is None else why
        super().__init__(
            f"@hansard.{decorator} is for functions and methods, not for {found!r}; {told}"
        )
        self.decorator = decorator


class AsyncCallback(InstrumentationError, TypeError):
    """A function that is handed in is called without await, and is async."""

    code = "async_callback"

    def __init__(self, name: str, instead: str = "a plain function") -> None:
        super().__init__(
            f"{name} is called without await, and an async function was given: give {instead}"
        )
        self.name = name


def refuse_async(name: str, function: object, instead: str = "a plain function") -> None:
    """Raise AsyncCallback for an async function: what it returns would be thrown away."""
    call = inspect.getattr_static(type(function), "__call__", None)
    if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call):
        raise AsyncCallback(name, instead)


class MemoryRefused(InstrumentationError):
    """Memory that may not be written, read or ended so; `code` says why, as the API does."""

    def __init__(
        self, code: str, message: str, details: Mapping[str, object] | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.details = dict(details or {})


class MemoryUnavailable(InstrumentationError):
    """The memory's store or server cannot be reached, or cannot write now; nothing was done."""

    code = "memory_unavailable"


class SpoolError(InstrumentationError):
    """The disk spool cannot be read or written."""

    code = "spool"


class PayloadError(InstrumentationError):
    """A payload cannot be found, or its bytes are not what its digest says."""

    code = "payload"


class TranscriptUnavailable(InstrumentationError):
    """Nobody who keeps transcripts can be reached, or it fails."""

    code = "transcript_unavailable"


class ReplayUnavailable(InstrumentationError):
    """Nobody who makes replays can be reached, or it refuses to."""

    code = "replay_unavailable"


class EmbeddedMissing(ConfigError):
    """Embedded mode was asked for, and what it needs is not installed."""

    code = "embedded_missing"

    def __init__(self, missing: str) -> None:
        super().__init__(
            f"embedded mode needs the package {missing!r}: pip install 'hansard[embedded]'"
        )
        self.missing = missing
