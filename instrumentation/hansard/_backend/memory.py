"""Where this process's memory is kept: its own store, or a server's. JSON in, JSON out.

The store is found by its entry point, as the package may be installed without it.
"""

from __future__ import annotations

import json
import threading
from functools import cache, cached_property
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, cast

from hansard._runtime import recorder as _state
from hansard.errors import EmbeddedMissing, GateUnavailable, MemoryRefused, MemoryUnavailable
from hansard_compiler.canonical import canonical_json
from hansard_compiler.errors import HansardError
from hansard_compiler.retention import RetentionMode

if TYPE_CHECKING:
    from hansard._config.settings import Settings
    from hansard_compiler.redaction.redactor import Redactor

Json: TypeAlias = dict[str, Any]
GROUP: Final = "hansard.memory"
_IDS: Final = frozenset({"run_id", "step_id", "memory_id", "source_run_id", "source_step_ids"})
_BUSY: Final = frozenset({"busy", "connection_lost", "store_error", "corrupt", "no_space"})


class MemoryStore(Protocol):
    """What the entry point leads to; threads may share it. Raises HansardError."""

    def write_json(self, told: Json) -> Json: ...
    def read_json(self, told: Json) -> Json: ...
    def invalidate_json(self, told: Json) -> Json: ...
    def close(self) -> None: ...


class OpenMemory(Protocol):
    """The entry point itself."""

    def __call__(self, data: Path, *, retention: RetentionMode) -> MemoryStore: ...


class MemoryPort(Protocol):
    """One of the two places. Raises MemoryRefused or MemoryUnavailable."""

    def ask(self, verb: str, told: Json, *, token: str | None = None) -> Json:
        """Write, read or invalidate, which a server takes with a person's `token`."""

    def close(self) -> None: ...


class LocalMemory:
    """Memory in this process's own store, on the caller's thread."""

    def __init__(self, settings: Settings) -> None:
        self._store = find_store()(settings.data, retention=settings.retention)

    def ask(self, verb: str, told: Json, *, token: str | None = None) -> Json:
        do = {
            "write": self._store.write_json,
            "read": self._store.read_json,
            "invalidate": self._store.invalidate_json,
        }[verb]
        try:
            return do(told)
        except HansardError as error:
            if error.code in _BUSY:
                raise MemoryUnavailable(str(error)) from error
            raise MemoryRefused(error.code, str(error)) from error
        except Exception as error:  # of SQLite or the disk
            raise MemoryUnavailable(f"{type(error).__name__}: {error}") from error

    def close(self) -> None:
        self._store.close()


class HttpMemory:
    """Memory of a server."""

    def __init__(self, settings: Settings) -> None:
        from hansard._backend.http_client import HttpClient

        self._mode = settings.retention
        self._data = settings.data
        try:
            self._client = HttpClient.of(settings)
        except GateUnavailable as error:
            raise MemoryUnavailable(str(error)) from error

    def ask(self, verb: str, told: Json, *, token: str | None = None) -> Json:
        from hansard._backend.http_client import credential, error_of

        address, body = f"/v1/memory/{verb}", self._clean(verb, told)
        is_decision = verb == "invalidate"
        headers = credential(token) if is_decision else {}
        try:
            answer = self._client.post(address, body, headers=headers, own=not is_decision)
        except GateUnavailable as error:
            raise MemoryUnavailable(str(error)) from error
        if answer.is_ok:
            return answer.body
        code, message, details = error_of(answer)
        if answer.status >= 500:
            raise MemoryUnavailable(message)
        raise MemoryRefused(code, message, details)

    def _clean(self, verb: str, told: Json) -> Json:
        """Return a request without secrets; where no content may leave, no memory is written."""
        if self._mode is RetentionMode.FULL_PAYLOADS:
            return told
        if self._mode is RetentionMode.METADATA_ONLY and verb == "write":
            raise MemoryRefused(
                "memory_not_retained",
                "retention metadata_only keeps no content: nothing is remembered",
            )
        clean: Json = {}
        for key, value in told.items():
            text = value if isinstance(value, str) else canonical_json(value)
            found = text if key in _IDS else self._redactor.redact_text(text).text
            clean[key] = value if found == text else _as_it_was(found, value)
        return clean

    @cached_property
    def _redactor(self) -> Redactor:
        from hansard._runtime.data_folder import read_or_make_key
        from hansard_compiler.redaction.redactor import Redactor

        recorder = _state.active()
        return Redactor(read_or_make_key(self._data)) if recorder is None else recorder.redactor

    def close(self) -> None:
        self._client.close()


def _as_it_was(text: str, value: Any) -> Any:
    return text if isinstance(value, str) else json.loads(text)


@cache
def find_store() -> OpenMemory:
    """Return what opens a store; raises EmbeddedMissing when its packages are not installed."""
    missing = GROUP
    for entry in entry_points(group=GROUP):
        try:
            return cast(OpenMemory, entry.load())
        except ModuleNotFoundError as error:
            missing = error.name or str(error)
    raise EmbeddedMissing(missing)


_lock = threading.Lock()  # held while a place is opened, by whichever threads ask first
_made: list[tuple[Settings, MemoryPort]] = []


def memory_of_this_process() -> MemoryPort:
    """Return where memory is kept, as `init()` or the environment says."""
    settings = _state.settings()
    known = _known(settings)
    if known is not None:
        return known
    with _lock:
        known = _known(settings)  # another thread may have been first
        if known is not None:
            return known
        if settings is None:
            from hansard._config.settings import load_settings

            settings = load_settings()
        port: MemoryPort = LocalMemory(settings) if settings.embedded else HttpMemory(settings)
        close_memory()
        _made.append((settings, port))
        return port


def _known(settings: Settings | None) -> MemoryPort | None:
    made = _made[-1:]
    return made[0][1] if made and (settings is None or made[0][0] is settings) else None


def close_memory() -> None:
    """Close the place that was used; the next call opens it again."""
    while _made:
        _made.pop()[1].close()


_state.before_shutdown.append(close_memory)
