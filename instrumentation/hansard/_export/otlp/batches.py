"""Taking batches to the collector: whole, or without what it will never take."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from hansard._export.otlp.exporter import Sender, make_sender
from hansard._export.otlp.log_records import PayloadRecords
from hansard._export.otlp.results import Answer, Outcome
from hansard._export.otlp.server_probe import is_hansard
from hansard._export.otlp.spans import logs_of, spans_of
from hansard._export.spool.files import Kind, SpoolFile
from hansard._runtime.forks import apart_from_forks

if TYPE_CHECKING:
    from hansard._config.settings import Settings

_MOST_PARTS: Final = 32  # requests spent on finding what of a batch is refused
_MOST_DOUBTS: Final = 3  # failures of one batch that may be its own fault
_CLOSED: Final = Answer(Outcome.LATER, "the program ends")


@dataclass(frozen=True, slots=True)
class Delivered:
    """What became of a batch. `refused` are items that will never be taken."""

    answer: Answer
    refused: Sequence[Any] = field(default=())


class Courier:
    """One way to the collector; made on first use, on the thread that uses it."""

    def __init__(
        self, settings: Settings, *, make: Callable[[Settings], Sender] = make_sender
    ) -> None:
        self._settings = settings
        self._make = make
        self._sender: Sender | None = None
        self._doubts: dict[object, int] = {}
        self._is_hansard: bool | None = None
        self._is_closed = False

    def deliver(self, kind: Kind, items: Sequence[Any], *, name: object = None) -> Delivered:
        """Send items once. What is refused is looked for in halves, and told apart.

        `name` is what a batch that is tried again is known by: after some failures that may be its
        own, an empty request shows whether they are.
        """
        answer = self._send(kind, items)
        if answer.outcome is Outcome.DOUBTFUL and self._is_own_fault(kind, name):
            answer = Answer(Outcome.REFUSED, answer.reason)
        if answer.outcome is not Outcome.REFUSED:
            return Delivered(answer)
        self._doubts.pop(name, None)
        return self._narrow(kind, items, answer)

    def _narrow(self, kind: Kind, items: Sequence[Any], answer: Answer) -> Delivered:
        refused: list[Any] = []
        parts: deque[Sequence[Any]] = deque(_halves(items) if len(items) > 1 else ())
        if len(items) <= 1:
            refused.extend(items)
        budget = _MOST_PARTS
        while parts:
            part = parts.popleft()
            told = self._send(kind, part) if budget > 0 else answer
            budget -= 1
            if told.outcome in (Outcome.REFUSED, Outcome.DOUBTFUL):
                if len(part) > 1 and budget > 0:
                    parts.extend(_halves(part))
                else:
                    refused.extend(part)
            elif told.outcome is not Outcome.ACCEPTED:
                # It went away meanwhile: all of it is tried again, what arrived is known there.
                return Delivered(told)
        return Delivered(Answer(Outcome.REFUSED, answer.reason), refused)

    def _is_own_fault(self, kind: Kind, name: object) -> bool:
        if name is None:
            return False
        self._doubts[name] = self._doubts.get(name, 0) + 1
        if self._doubts[name] < _MOST_DOUBTS:
            return False
        return self._send(kind, ()).outcome is Outcome.ACCEPTED

    def _send(self, kind: Kind, items: Sequence[Any]) -> Answer:
        if self._is_closed:
            return _CLOSED
        if self._sender is None:
            with apart_from_forks():
                for each in (Kind.TRACES, Kind.LOGS):
                    encode(each, ())  # imports the encoders
                self._sender = self._make(self._settings)
        return (
            self._sender.send_logs(items) if kind is Kind.LOGS else self._sender.send_spans(items)
        )

    def is_hansard(self) -> bool:
        """Say whether the collector is Hansard; asked once for each time it is reached."""
        if self._is_hansard is None:
            self._is_hansard = is_hansard(self._settings)
        return self._is_hansard

    def lost_touch(self) -> None:
        """The collector went away: another may answer next time."""
        self._is_hansard = None

    def close(self) -> None:
        """Close connections; a request that is under way ends with an error."""
        self._is_closed = True
        if self._sender is not None:
            self._sender.close()


def _halves(items: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any]]:
    middle = len(items) // 2
    return items[:middle], items[middle:]


def items_of(file: SpoolFile) -> Sequence[Any]:
    """Return what is in a spool file. Raises SpoolError, or ValueError when it is torn."""
    data = file.read()
    if not data:
        raise ValueError("it is empty")
    with apart_from_forks():
        return logs_of(data) if file.kind is Kind.LOGS else spans_of(data)


def encode(kind: Kind, items: Sequence[Any]) -> bytes:
    """Return items as the bytes of a spool file, by the stock encoder; raises what it raises."""
    data: bytes
    if isinstance(items, PayloadRecords):
        return items.encode()
    if kind is Kind.LOGS:
        from opentelemetry.exporter.otlp.proto.common._log_encoder import encode_logs

        data = encode_logs(items).SerializeToString()
        return data
    from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans

    data = encode_spans(items).SerializeToString()
    return data
