"""The own store of this process, on the caller's thread.

Each part is imported when it is opened, once the entry point has shown that the extra is installed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hansard._backend.protocol import Decisions, Parts, embedded_parts
from hansard._gate.arguments import Json
from hansard.errors import EmbeddedMissing, GateUnavailable, MemoryRefused, MemoryUnavailable
from hansard_compiler.errors import HansardError

if TYPE_CHECKING:
    from hansard._config.settings import Settings
    from hansard_compiler.redaction.redactor import Redactor
    from hansard_compiler.transcripts.ports import Transcripts
    from hansard_store.memory.service import MemoryService

_BUSY: Final = frozenset({"busy", "connection_lost", "store_error", "corrupt", "no_space"})


class LocalBackend(Parts):
    """The store in a data folder as a Backend."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        super().__init__(self._open_decisions, self._open_memory)

    def _open_decisions(self) -> Decisions:
        try:
            embedded_parts()
            from hansard._backend.local_approvals import open_decisions
        except (EmbeddedMissing, ImportError) as error:
            message = f"the store cannot be used: {type(error).__name__}: {error}"
            raise GateUnavailable(message) from error
        return open_decisions(self._settings.data, retention=self._settings.retention)

    def _open_memory(self) -> LocalMemory:
        embedded_parts()
        from hansard_store.memory.service import open_memory

        return LocalMemory(open_memory(self._settings.data, retention=self._settings.retention))

    def transcripts(self, redactor: Redactor) -> Transcripts:
        embedded_parts()
        from hansard_store.transcripts.service import open_transcripts

        settings = self._settings
        return open_transcripts(settings.data, retention=settings.retention, redactor=redactor)

    def make_replay(self, body: Json, timeout_s: float, *, goes_on: str | None = None) -> Json:
        data, retention = self._settings.data, self._settings.retention
        return embedded_parts().make_replay(data, retention=retention, body=body, goes_on=goes_on)


class LocalMemory:
    """The memory of this process's store."""

    def __init__(self, service: MemoryService) -> None:
        self._service = service

    def ask(self, verb: str, arguments: Json, *, token: str | None = None) -> Json:
        do = {
            "write": self._service.write_json,
            "read": self._service.read_json,
            "invalidate": self._service.invalidate_json,
        }[verb]
        try:
            return do(arguments)
        except HansardError as error:
            if error.code in _BUSY:
                raise MemoryUnavailable(str(error)) from error
            raise MemoryRefused(error.code, str(error)) from error
        except Exception as error:  # of SQLite or the disk
            raise MemoryUnavailable(f"{type(error).__name__}: {error}") from error

    def close(self) -> None:
        self._service.close()
