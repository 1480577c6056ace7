"""Taking payloads to the collector: as log records, large ones by upload.

A log record passes whatever collector stands in between. Up to 1 MiB it is always one; larger ones
are uploaded where an HTTP door is known (`payload_upload`), and else sent as log records as large
as the other end is known to take.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final

from hansard._config.values import GRPC
from hansard._export.dropped import Reason
from hansard._export.otlp.log_records import PayloadRecords, ref_of
from hansard._export.otlp.results import ACCEPTED, Answer, Outcome
from hansard._export.spool.files import Kind
from hansard._payloads.packs import WaitingPayload
from hansard._payloads.spool import OnLoss, PayloadSpool
from hansard._runtime.forks import apart_from_forks
from hansard._runtime.warnings import warn_once

if TYPE_CHECKING:
    from opentelemetry.sdk.resources import Resource

    from hansard._config.settings import Settings
    from hansard._export.otlp.batches import Courier
    from hansard._payloads.upload import Uploader

RECORD_BYTES: Final = 1 << 20  # up to there a payload is a log record
_BATCH_BYTES: Final = 2 << 20
_BATCH: Final = 512
# What the OpenTelemetry Collector takes by default is 4 MiB over gRPC and 20 MiB over HTTP.
_MOST_IN_BETWEEN: Final = {True: 7 << 19, False: 16 << 20}  # is it gRPC
_MOST_AT_HANSARD: Final = 60 << 20  # of the 64 MiB that it takes in one request
_MOST_EMBEDDED: Final = 64 << 20  # no request to fit into
_MOST_DOUBTS: Final = 3
_LOOK_AGAIN_S: Final = 60.0


class PayloadTransport:
    """Sends what waits in the spool. Used by one thread, the sender's; `waiting` by any."""

    def __init__(self, settings: Settings, spool: PayloadSpool) -> None:
        self._settings = settings
        self._spool = spool
        self._is_grpc = settings.protocol == GRPC
        self._uploader: Uploader | None = None
        self._no_uploads_until_s = 0.0
        self._doubts: dict[str, int] = {}
        self.on_loss: OnLoss = lambda _reason, _count: None  # who tells the collector

    @property
    def waiting(self) -> int:
        """How many payloads wait, as far as this process knows."""
        return len(self._spool)

    def due_s(self, delay_s: float) -> float | None:
        """Return when to send some, on the monotonic clock: many at once, or after a while."""
        if not self._spool:
            return None
        is_batch = len(self._spool) >= _BATCH or self._spool.size_bytes >= _BATCH_BYTES
        return 0.0 if is_batch else self._spool.since_s + delay_s

    def look(self) -> None:
        """Take in what dead processes left."""
        self._spool.look()

    def send_next(self, courier: Courier, resource: Resource) -> Answer:
        """Send what has waited longest, in one request or a few. ACCEPTED: that is settled."""
        waiting = self._spool.first(_BATCH)
        if not waiting:
            return ACCEPTED
        if waiting[0].size_bytes > RECORD_BYTES:
            answer = self._send_large(courier, resource, waiting[0])
        else:
            answer = self._send_records(courier, resource, _batch_of(waiting))
        return answer or ACCEPTED

    def send_all(self, courier: Courier, resource: Resource) -> Answer:
        """Send all that waits; returns ACCEPTED, or why the rest still does."""
        self.look()
        answer = ACCEPTED
        while self.waiting and answer.outcome is Outcome.ACCEPTED:
            answer = self.send_next(courier, resource)
        return answer

    def after_fork(self) -> None:
        """In a child: what waits is the parent's to send, over connections of its own."""
        self._uploader = None
        self._spool.after_fork()

    def close(self) -> None:
        """Close connections, and leave what waits to the next process."""
        self._spool.leave()
        if self._uploader is not None:
            self._uploader.close()

    # ---- as log records; what is answered is None, or why to stop here

    def _send_records(
        self, courier: Courier, resource: Resource, batch: Sequence[WaitingPayload]
    ) -> Answer | None:
        loaded = self._load_all(batch)
        if not loaded:
            return None
        records = PayloadRecords(loaded, resource)
        delivered = courier.deliver(Kind.LOGS, records, name=("payload", loaded[0][0].ref))
        outcome = delivered.answer.outcome
        if outcome in (Outcome.LATER, Outcome.DOUBTFUL):
            return delivered.answer
        if outcome is Outcome.ACCEPTED:
            self._spool.done(*(payload for payload, _ in loaded))
            return None
        refused = {ref_of(record) for record in delivered.refused}
        for payload, _ in loaded:
            if outcome is Outcome.NOT_RECEIVED:
                self._give_up(payload, Reason.NOT_RECEIVED, delivered.answer)
            elif payload.ref in refused:
                self._give_up(payload, Reason.REFUSED, delivered.answer)
            else:
                self._spool.done(payload)
        return None

    def _load_all(self, batch: Sequence[WaitingPayload]) -> list[tuple[WaitingPayload, bytes]]:
        packs: dict[Path, BinaryIO] = {}
        try:
            found = [(payload, self._load(payload, packs)) for payload in batch]
        finally:
            for file in packs.values():
                file.close()
        return [(payload, data) for payload, data in found if data is not None]

    def _load(
        self, payload: WaitingPayload, packs: dict[Path, BinaryIO] | None = None
    ) -> bytes | None:
        """Return the bytes; None when they are not there, or not those of their name."""
        if payload.data is not None:
            return payload.data
        try:
            data = payload.read(packs)
        except FileNotFoundError:
            self._spool.done(payload)  # another process has sent it
            return None
        except OSError:
            self._spool.lose(payload, Reason.UNREADABLE)
            return None
        if f"sha256:{hashlib.sha256(data).hexdigest()}" != payload.ref:
            self._spool.lose(payload, Reason.UNREADABLE)
            return None
        return data

    def _give_up(self, payload: WaitingPayload, reason: Reason, answer: Answer) -> None:
        self._spool.lose(payload, reason)
        warn_once(
            f"payload {reason.name}",
            "a payload of %s bytes did not arrive: %s",
            payload.size_bytes,
            answer.reason,
        )

    # ---- large ones

    def _send_large(
        self, courier: Courier, resource: Resource, payload: WaitingPayload
    ) -> Answer | None:
        answer = self._upload(payload)
        if answer is None:
            return None
        if answer.outcome is not Outcome.NOT_RECEIVED:
            return answer
        if payload.size_bytes <= self._most_in_a_record(courier):
            return self._send_records(courier, resource, [payload])
        self._give_up(
            payload,
            Reason.NOT_RECEIVED,
            Answer(
                Outcome.NOT_RECEIVED,
                f"{answer.reason}; it is too large for a log record there. Set http_endpoint "
                "(HANSARD_HTTP_ENDPOINT) to the HTTP address of Hansard",
            ),
        )
        return None

    def _upload(self, payload: WaitingPayload) -> Answer | None:
        """Upload a payload; None when that is settled, NOT_RECEIVED where there is no such door."""
        uploader = self._door()
        if uploader is None or time.monotonic() < self._no_uploads_until_s:
            return Answer(Outcome.NOT_RECEIVED, "no HTTP door is known")
        data = self._load(payload)
        if data is None:
            return None
        answer = uploader.put(payload.ref, data, media_type=payload.media_type)
        if answer.outcome is Outcome.ACCEPTED:
            self._doubts.pop(payload.ref, None)
            self._spool.done(payload)
            return None
        if answer.outcome is Outcome.NOT_RECEIVED:
            self._no_uploads_until_s = time.monotonic() + _LOOK_AGAIN_S
            return answer
        if answer.outcome is Outcome.REFUSED or self._is_hopeless(payload, answer):
            self._give_up(payload, Reason.REFUSED, answer)
            return None
        return answer

    def _is_hopeless(self, payload: WaitingPayload, answer: Answer) -> bool:
        if answer.outcome is not Outcome.DOUBTFUL:
            return False
        doubts = self._doubts[payload.ref] = self._doubts.get(payload.ref, 0) + 1
        if doubts < _MOST_DOUBTS:
            return False
        del self._doubts[payload.ref]
        return True

    def _door(self) -> Uploader | None:
        if self._uploader is None and not self._settings.embedded:
            base = self._settings.http_endpoint
            if base is None and not self._is_grpc:
                base = self._settings.endpoint
            if base is not None:
                with apart_from_forks():
                    from hansard._payloads.upload import Uploader

                self._uploader = Uploader(base, self._settings)
        return self._uploader

    def _most_in_a_record(self, courier: Courier) -> int:
        if self._settings.embedded:
            return _MOST_EMBEDDED
        if courier.is_hansard():
            return _MOST_AT_HANSARD
        return _MOST_IN_BETWEEN[self._is_grpc]


def _batch_of(waiting: Sequence[WaitingPayload]) -> list[WaitingPayload]:
    """Return the first of them that make one request."""
    batch: list[WaitingPayload] = []
    size_bytes = 0
    for payload in waiting:
        size_bytes += payload.size_bytes
        if payload.size_bytes > RECORD_BYTES or (batch and size_bytes > _BATCH_BYTES):
            break
        batch.append(payload)
    return batch
