"""The threads of notifications: one fills the outbox, two watch conditions, one sends a webhook."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from typing import Final

import apsw

from hansard_collector.background import Background
from hansard_collector.notifications.messages import (
    Webhook,
    message_of,
    signed_headers,
    signing_secret,
)
from hansard_collector.webhooks import WebhookFailed, post_json
from hansard_store.approvals.service import ApprovalService
from hansard_store.database.connections import OwnConnections
from hansard_store.database.data_folder import DataFolder
from hansard_store.database.disk import SCARCE_BYTES, free_bytes
from hansard_store.database.transactions import altered_objects, observing_transaction
from hansard_store.notifications.deliveries import (
    Attempt,
    DueDelivery,
    claim_due,
    next_due_ns,
    record_attempt,
    remove_old,
)
from hansard_store.notifications.outbox import (
    State,
    begin_condition,
    end_condition,
    follow,
    has_news,
    is_followed,
    lasts,
    stop_following,
)
from hansard_store.notifications.records import NotificationType

_log = logging.getLogger("hansard.notifications")
_EVERY_S: Final = 0.5
_DISK_EVERY_S: Final = 60.0
_CHAIN_FIRST_S: Final = 300.0
_CHAIN_EVERY_S: Final = 3_600.0
_ENOUGH_BYTES: Final = 2 * SCARCE_BYTES  # from which a disk is not nearly full any more
_NS_PER_S: Final = 10**9
_DISK: Final = "disk"
_CHAIN: Final = "chain"


class NotificationWork:
    """What a server does for the notifications of one store; `working` runs it beside a block.

    Connections are one a thread. Without webhooks nothing is written, and what happened meanwhile
    is not sent later.
    """

    def __init__(self, folder: DataFolder, webhooks: Sequence[Webhook], *, pages: str) -> None:
        self._folder = folder
        self._pages = pages
        key = folder.key()
        self._secret = signing_secret(key)
        self._webhooks = {one.endpoint(key): one for one in webhooks}
        self._endpoints = tuple(self._webhooks)
        self._connections = OwnConnections(folder)

    @contextmanager
    def working(self) -> Iterator[None]:
        """Run the threads for as long as the block lasts."""
        with closing(self._connections), ExitStack() as running:
            if not self._webhooks:
                self._stop_following()
            for one in self._threads():
                running.enter_context(one.working())
            yield

    def _stop_following(self) -> None:
        if is_followed(self._connections.get()):
            with self._connections.writing() as connection:
                stop_following(connection)

    def _threads(self) -> Iterator[Background]:
        if not self._webhooks:
            return
        later = "notifications are put off"
        yield Background("hansard-outbox", self._fill, every_s=_EVERY_S, log=_log, put_off=later)
        yield Background(
            "hansard-disk-watch", self.look_at_disk, every_s=_DISK_EVERY_S, log=_log, put_off=later
        )
        yield Background(
            "hansard-chain-watch",
            self.look_at_chain,
            every_s=_CHAIN_EVERY_S,
            first_s=_CHAIN_FIRST_S,
            log=_log,
            put_off=later,
        )
        for number, endpoint in enumerate(self._endpoints, 1):
            yield Background(
                f"hansard-webhook-{number}",
                _Sender(self, endpoint.name, self._webhooks[endpoint].address).send_due,
                every_s=_EVERY_S,
                log=_log,
                put_off=later,
            )

    def connection(self) -> apsw.Connection:
        """Return the connection of the calling thread."""
        return self._connections.get()

    def message(self, due: DueDelivery) -> tuple[bytes, Mapping[str, str]]:
        """Return body and headers of a message, signed now."""
        body = message_of(due, pages=self._pages)
        headers = signed_headers(self._secret, due.event_id, body, now_s=int(time.time()))
        return body, headers

    def _fill(self, stop: threading.Event) -> None:
        """Read what happened into the outbox until nothing is new.

        A transaction begun while the schema is altered holds an event that says so, once.
        """
        connection = self.connection()
        while not stop.is_set() and (altered_objects(connection) or has_news(connection)):
            with observing_transaction(connection):
                count = follow(connection, self._endpoints, now_ns=time.time_ns())
            if not count:
                return

    def look_at_disk(self, _: threading.Event | None = None) -> None:
        """Notify of a disk that is nearly full, or note that it is not any more."""
        free = free_bytes(self._folder)
        if free < SCARCE_BYTES:
            self._begin(NotificationType.DISK_NEARLY_FULL, _DISK, {"free_bytes": max(free, 0)})
        elif free > _ENOUGH_BYTES:
            self._end(_DISK)

    def look_at_chain(self, _: threading.Event | None = None) -> None:
        """Notify of an audit log that is not as it was written, or note that it is whole."""
        with observing_transaction(self.connection()):
            remove_old(self.connection(), now_ns=time.time_ns())
        with ApprovalService(self._folder) as log:
            report = log.verify()
        if report.broken is None:
            self._end(_CHAIN)
        else:
            self._begin(NotificationType.CHAIN_BROKEN, _CHAIN, {"event": report.broken.seq})

    def _begin(self, type: NotificationType, key: str, data: Mapping[str, int]) -> None:
        now_ns = time.time_ns()
        state = State(type, key, now_ns, data, lasts=True)
        with observing_transaction(self.connection()):
            begin_condition(self.connection(), state, self._endpoints, now_ns=now_ns)

    def _end(self, key: str) -> None:
        if not lasts(self.connection(), key):
            return
        with observing_transaction(self.connection()):
            end_condition(self.connection(), key, now_ns=time.time_ns())


class _Sender:
    """Sends to one endpoint, one message after the other, in a thread of its own."""

    def __init__(self, work: NotificationWork, endpoint: str, address: str) -> None:
        self._work = work
        self._endpoint = endpoint
        self._address = address

    def send_due(self, stop: threading.Event) -> None:
        """Send what is due, one at a time: a lease lasts for one attempt."""
        connection = self._work.connection()
        while not stop.is_set():
            next_ns = next_due_ns(connection, self._endpoint)
            if next_ns is None or next_ns > time.time_ns():
                return
            with observing_transaction(connection):
                claimed = claim_due(connection, self._endpoint, now_ns=time.time_ns(), limit=1)
            for due in claimed:
                ended = self._attempt(due)
                with observing_transaction(connection):
                    record_attempt(connection, self._endpoint, due, ended, now_ns=time.time_ns())

    def _attempt(self, due: DueDelivery) -> Attempt:
        body, headers = self._work.message(due)
        try:
            status = post_json(self._address, body, headers=headers)
        except WebhookFailed as error:
            _log.info("notification %s was not delivered: %s", due.event_id, error)
            return Attempt(error.http_status, str(error), error.retry_after_s * _NS_PER_S)
        return Attempt(status)
