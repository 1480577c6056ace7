"""The ingest pipeline: one thread that decodes and writes, fed by a bounded queue.

    decode -> validate -> redact -> dialect -> rows -> group commit -> acknowledge

The first five are `requests.take_apart`, outside the transaction; `ItemWriter` is the rows.
What queued while the last commit ran shares the next transaction, at most `_BATCH_ITEMS` items,
about 100 ms of writing, so that an approval's write never waits long for the lock. A request may
span several transactions and is acknowledged after the last: sent again, its parts are known.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field

import apsw

from hansard_collector.derive import DERIVED_VERSION
from hansard_collector.errors import MalformedRequest, StoreBusy
from hansard_collector.ingest import IngestRequest, IngestResult, RefusedRequest
from hansard_collector.payload_records import PayloadStage
from hansard_collector.prepare import Preparer
from hansard_collector.redact import RetentionPolicy
from hansard_collector.refusals import Refusals, sender_key
from hansard_collector.requests import Prepared, TakenApart, take_apart
from hansard_collector.write import ItemWriter, dialect_of
from hansard_store.database import DataFolder, open_for_ingest
from hansard_store.errors import StoreBusyError
from hansard_store.ledger import Count, LedgerBatch, Refusal
from hansard_store.writer import IngestWriter

_BATCH_ITEMS = 512
_PREPARE_S = 0.25  # most time spent preparing one transaction: senders wait for their answers
_TAKE_BYTES = 4 * 1024 * 1024  # of requests decoded before the next transaction
_QUEUE_BYTES = 192 * 1024 * 1024  # a request of the largest size always fits when it is alone
_QUEUE_REQUESTS = 10_000

_log = logging.getLogger("hansard.pipeline")


@dataclass(slots=True)
class _Job:
    """A request on its way: its items as far as they are written, and what became of them."""

    request: IngestRequest
    future: Future[IngestResult]
    taken: TakenApart | None = None
    count: Count = field(default_factory=Count)
    failed: str = ""


@dataclass(slots=True)
class _Tally:
    """What became of a job's items in one transaction."""

    job: _Job
    outcomes: Counter[str] = field(default_factory=Counter)
    dialect: str = ""

    def count_in(self, ledger: LedgerBatch) -> None:
        """Add to the ledger of the transaction that stores what is counted."""
        request = self.job.request
        key = sender_key(request.sender, _service(self.job))
        count = ledger.of(key, request.signal, address=request.sender.address)
        count.received += self.outcomes.total()
        count.add(self.outcomes)
        if self.dialect:
            ledger.dialects[key] = self.dialect


@dataclass(frozen=True, slots=True)
class QueueState:
    """How full the queue is, for /health."""

    requests: int
    bytes: int
    max_bytes: int


class Pipeline:
    """Owns the ingest connection; receivers submit, one thread writes.

    The lock guards the queue and the refusals; they are touched by every receiver thread and by
    the pipeline thread. All else belongs to the pipeline thread alone.
    """

    def __init__(
        self,
        folder: DataFolder,
        retention: RetentionPolicy,
        *,
        durability: str = "normal",
        queue_bytes: int = _QUEUE_BYTES,
    ) -> None:
        self._connection = open_for_ingest(folder, durability=durability)
        self._writer = IngestWriter(self._connection, derived_version=DERIVED_VERSION)
        self._preparer = Preparer(key=folder.key())
        self._retention = retention
        self._payloads = PayloadStage(folder, retention.mode)
        self._max_bytes = queue_bytes
        self._condition = threading.Condition()
        self._queue: deque[_Job] = deque()
        self._queued_bytes = 0
        self._refusals = Refusals()
        self._closing = False
        # Of the pipeline thread: what could not be counted while the store was busy.
        self._uncounted = Refusals()
        self._thread = threading.Thread(target=self._run, name="hansard-pipeline", daemon=True)

    # ---- what receivers call, from any thread

    def start(self) -> None:
        """Begin to write what is submitted."""
        self._thread.start()

    def submit(self, request: IngestRequest) -> Future[IngestResult]:
        """Queue a request; raises StoreBusy when the queue is full or the server is stopping."""
        job = _Job(request, Future())
        size = len(request.body)
        with self._condition:
            if self._closing:
                raise StoreBusy("the server is stopping; send it again to the next one")
            full = self._queued_bytes + size > self._max_bytes or len(self._queue) > _QUEUE_REQUESTS
            if full and self._queue:
                raise StoreBusy("the ingest queue is full; send it again in a second")
            self._queue.append(job)
            self._queued_bytes += size
            self._condition.notify()
        return job.future

    def refuse(self, request: RefusedRequest) -> None:
        """Count a request that a receiver refused; it is written with the next transaction."""
        with self._condition:
            self._refusals.add(request)
            self._condition.notify()

    def queue_state(self) -> QueueState:
        """Return how full the queue is."""
        with self._condition:
            return QueueState(len(self._queue), self._queued_bytes, self._max_bytes)

    def close(self) -> None:
        """Finish what was accepted, checkpoint and close; nothing is accepted any more."""
        with self._condition:
            self._closing = True
            self._condition.notify()
        if self._thread.ident is not None:
            self._thread.join()
        with contextlib.suppress(apsw.BusyError):  # somebody reads: the next opening takes it in
            self._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        self._connection.close()

    # ---- the pipeline thread

    def _run(self) -> None:
        while True:
            jobs, refusals = self._take()
            if not jobs and not refusals:
                return
            try:
                self._process(jobs, refusals)
            except Exception as error:
                # The last border: whatever it was, the thread goes on and the senders are told.
                _log.exception("requests could not be processed")
                _answer_all(jobs, error)

    def _take(self) -> tuple[list[_Job], Refusals]:
        """Wait for work, and return what is queued up to some megabytes; nothing when closing."""
        with self._condition:
            while not (self._queue or self._refusals or self._closing):
                self._condition.wait()
            jobs: list[_Job] = []
            taken = 0
            while self._queue and (taken < _TAKE_BYTES or not jobs):
                job = self._queue.popleft()
                size = len(job.request.body)
                self._queued_bytes -= size
                taken += size
                jobs.append(job)
            refusals, self._refusals = self._refusals, Refusals()
            return jobs, refusals

    def _process(self, jobs: Sequence[_Job], refusals: Refusals) -> None:
        ready = [job for job in jobs if self._open(job)]
        refusals.merge(self._uncounted)
        refusals.merge(Refusals(_failure(job) for job in jobs if job.failed))
        self._uncounted = Refusals()
        items = _items_of(ready)
        pending: list[tuple[_Job, Prepared | None]] = []
        while True:
            pending = _next_chunk(items)
            if not pending and not refusals:
                break
            if not self._commit(pending, refusals):
                # Counted with the next requests; until then nobody is answered either.
                self._uncounted = refusals
                _answer_all(
                    ready, StoreBusy("the store cannot be written now; send it again in a second")
                )
                return
            refusals = Refusals()
            for job, item in pending:
                if item is None:
                    _acknowledge(job)
            if not pending:
                break

    def _open(self, job: _Job) -> bool:
        """Decode a job's request; False when it cannot be, which its sender is told at once."""
        if not job.future.set_running_or_notify_cancel():
            return False  # nobody waits for it any more; its sender will send it again
        try:
            job.taken = take_apart(job.request, self._preparer, self._retention, self._payloads)
        except MalformedRequest as error:
            job.failed = str(error)
            job.future.set_exception(error)
            return False
        except Exception as error:  # a stage must not end the thread: the request is refused
            _log.exception("a request could not be taken apart")
            job.failed = f"internal error ({type(error).__name__})"
            job.future.set_exception(error)
            return False
        return True

    def _commit(
        self,
        chunk: Sequence[tuple[_Job, Prepared | None]],
        refusals: Refusals,
    ) -> bool:
        """Write a chunk in one transaction; False when the store cannot take it now."""
        try:
            self._write(chunk, refusals)
        except StoreBusyError as error:
            _log.warning("%s", error)
            return False
        except Exception:
            _log.exception("a batch could not be written; its items are tried one by one")
            return self._write_singly(chunk, refusals)
        return True

    def _write(
        self,
        chunk: Sequence[tuple[_Job, Prepared | None]],
        refusals: Refusals,
    ) -> None:
        now_ns = time.time_ns()
        tallies: dict[int, _Tally] = {}
        with self._writer.batch(now_ns=now_ns) as batch:
            items = ItemWriter(self._writer, batch, self._preparer.messages)
            for job, item in chunk:
                if item is None:
                    _count_request(batch.ledger, job)
                    continue
                tally = tallies.setdefault(id(job), _Tally(job))
                tally.outcomes[items.write(item)] += 1
                tally.dialect = dialect_of(item) or tally.dialect
            items.join_logs()
            for tally in tallies.values():
                tally.count_in(batch.ledger)
            refusals.write(batch.ledger)
        for tally in tallies.values():
            tally.job.count.add(tally.outcomes)

    def _write_singly(
        self,
        chunk: Sequence[tuple[_Job, Prepared | None]],
        refusals: Refusals,
    ) -> bool:
        """Write items one by one, so that one that cannot be written costs only itself."""
        try:
            self._write((), refusals)
        except StoreBusyError:
            return False
        for job, item in chunk:
            try:
                self._write([(job, item)], Refusals())
            except StoreBusyError:
                return False
            except Exception as error:
                _log.error("an item could not be written and is refused: %s", error)
                if job.taken is not None:
                    job.taken.reasons[f"internal error ({type(error).__name__})"] += 1
        return True


def _answer_all(jobs: Sequence[_Job], error: Exception) -> None:
    """Tell every sender that was not answered yet."""
    for job in jobs:
        if not job.future.done():
            job.future.set_exception(error)


def _items_of(jobs: Sequence[_Job]) -> Iterator[tuple[_Job, Prepared | None]]:
    """Yield every item of every job, and after a job's last item the job with None."""
    for job in jobs:
        assert job.taken is not None  # only opened jobs come here
        for item in job.taken.items:
            yield job, item
        yield job, None


def _next_chunk(
    items: Iterator[tuple[_Job, Prepared | None]],
) -> list[tuple[_Job, Prepared | None]]:
    """Prepare the next items for one transaction: a number of them, or some time's worth."""
    chunk: list[tuple[_Job, Prepared | None]] = []
    started = time.monotonic()
    for one in items:
        chunk.append(one)
        if len(chunk) >= _BATCH_ITEMS or time.monotonic() - started > _PREPARE_S:
            break
    return chunk


def _acknowledge(job: _Job) -> None:
    assert job.taken is not None  # only opened jobs come here
    count = job.count
    accepted = count.stored + count.duplicate + count.opened + count.deleted
    rejected = job.taken.rejected
    job.future.set_result(IngestResult(accepted, rejected, job.taken.message()))


# ---- counting, inside the transaction that stores what is counted


def _service(job: _Job) -> str:
    """Return the service that most items of a request name."""
    services = job.taken.services if job.taken else None
    return services.most_common(1)[0][0][:200] if services else ""


def _count_request(ledger: LedgerBatch, job: _Job) -> None:
    """Count a request as a whole, with what of it was refused."""
    request, taken = job.request, job.taken
    assert taken is not None  # only opened jobs come here
    key = sender_key(request.sender, _service(job))
    count = ledger.of(key, request.signal, address=request.sender.address)
    count.requests += 1
    count.bytes += len(request.body)
    count.received += taken.rejected
    count.rejected += taken.rejected
    for reason, items in taken.reasons.items():
        ledger.refuse(
            Refusal(
                sender=key,
                address=request.sender.address,
                signal=request.signal,
                code="rejected_item",
                message=reason,
                items=items,
                size_bytes=len(request.body),
                time_ns=request.received_ns,
            )
        )


def _failure(job: _Job) -> RefusedRequest:
    request = job.request
    return RefusedRequest(
        signal=request.signal,
        sender=request.sender,
        code="malformed",
        message=job.failed,
        size_bytes=len(request.body),
        received_ns=request.received_ns,
    )
