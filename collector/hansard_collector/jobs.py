"""Requests on their way through the pipeline: their items, what became of them, their answers."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TypeAlias

from hansard_collector.courtesy import Courtesy
from hansard_collector.ingest import IngestRequest, IngestResult, RefusedRequest
from hansard_collector.refusals import sender_key
from hansard_collector.requests import OpenedRequest, Prepared, TakenApart
from hansard_store.ledger import Count, LedgerBatch, Refusal

_BATCH_ITEMS = 512
_PREPARE_S = 0.25  # most time spent preparing one transaction: senders wait for their answers


@dataclass(slots=True)
class Job:
    """A request on its way: its items as far as they are written, and what became of them."""

    request: IngestRequest
    future: Future[IngestResult]
    opened: OpenedRequest | None = None
    taken: TakenApart | None = None
    count: Count = field(default_factory=Count)
    failed: str = ""

    def acknowledge(self) -> None:
        """Tell the sender what became of its items; all of them are committed."""
        assert self.taken is not None  # only opened jobs come here
        count = self.count
        accepted = count.stored + count.duplicate + count.opened + count.deleted
        rejected = self.taken.rejected
        if not self.future.done():
            self.future.set_result(IngestResult(accepted, rejected, self.taken.message()))

    def refuse(self, error: Exception) -> None:
        """Tell the sender that its request failed, unless it was answered already."""
        if not self.future.done():
            self.future.set_exception(error)

    @property
    def service(self) -> str:
        """The service that most items of the request name."""
        services = self.taken.services if self.taken else None
        return services.most_common(1)[0][0][:200] if services else ""

    def count_in(self, ledger: LedgerBatch) -> None:
        """Count the request as a whole, with what of it was refused."""
        request, taken = self.request, self.taken
        assert taken is not None  # only opened jobs come here
        key = sender_key(request.sender, self.service)
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

    def failure(self) -> RefusedRequest:
        """Return what is to be counted of a request that could not be decoded."""
        request = self.request
        return RefusedRequest(
            signal=request.signal,
            sender=request.sender,
            code="malformed",
            message=self.failed,
            size_bytes=len(request.body),
            received_ns=request.received_ns,
        )


@dataclass(slots=True)
class Tally:
    """What became of a job's items in one transaction."""

    job: Job
    outcomes: Counter[str] = field(default_factory=Counter)
    dialect: str = ""

    def count_in(self, ledger: LedgerBatch) -> None:
        """Add to the ledger of the transaction that stores what is counted."""
        request = self.job.request
        key = sender_key(request.sender, self.job.service)
        count = ledger.of(key, request.signal, address=request.sender.address)
        count.received += self.outcomes.total()
        count.add(self.outcomes)
        if self.dialect:
            ledger.dialects[key] = self.dialect


Chunk: TypeAlias = list[tuple[Job, Prepared | None]]  # None: the job's items are all before it


class Chunks:
    """The items of jobs, prepared as they are asked for, one transaction's worth at a time."""

    def __init__(self, jobs: Sequence[Job], *, courtesy: Courtesy) -> None:
        self._jobs = jobs
        self._courtesy = courtesy
        self._items = _items_of(jobs)
        self._held: Chunk = []  # prepared while looking for the end of a job

    def next(self) -> Chunk:
        """Prepare the next items: a number of them, or some time's worth; none at the end."""
        chunk, self._held = self._held, []
        started = time.monotonic()
        for one in self._items:
            self._courtesy.give_way()
            if len(chunk) >= _BATCH_ITEMS and one[1] is not None:
                self._held = [one]
                break
            # The end of a job goes with its last item: its sender is answered a commit earlier.
            chunk.append(one)
            if one[1] is not None and time.monotonic() - started > _PREPARE_S:
                break
        return chunk

    def abandon(self, error: Exception) -> None:
        """Tell the senders of what is left that it failed."""
        self._items, self._held = iter(()), []
        for job in self._jobs:
            job.refuse(error)


def _items_of(jobs: Sequence[Job]) -> Iterator[tuple[Job, Prepared | None]]:
    """Yield every item of every job, and after a job's last item the job with None."""
    for job in jobs:
        assert job.taken is not None  # only opened jobs come here
        for item in job.taken.items:
            if job.future.done():
                break  # it failed half-way: its sender has been told to send it again
            yield job, item
        yield job, None
