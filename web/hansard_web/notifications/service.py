"""Notifications as pages, the API and the commands use them: where they go, sending them again."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from hansard_collector.notifications.messages import Webhook
from hansard_store.bodies import Body
from hansard_store.database.connections import accountability_transaction
from hansard_store.database.data_folder import DataFolder
from hansard_store.notifications.deliveries import get_notification, retry_now
from hansard_store.notifications.outbox import Endpoint, add_test
from hansard_store.notifications.records import SUBJECTS, Notification
from hansard_web.errors import NotificationsOff

_ALL: Final = tuple(one for one in SUBJECTS if one != "test")


class EndpointBody(Body):
    name: str
    subjects: list[str]


@dataclass(frozen=True, slots=True)
class Notifications:
    """The notifications of one store, with the webhooks of the settings."""

    folder: DataFolder
    webhooks: Sequence[Webhook]
    outbound: bool

    @property
    def endpoints(self) -> tuple[Endpoint, ...]:
        """Where notifications go; none while `outbound` is off."""
        if not self.outbound:
            return ()
        key = self.folder.key()
        return tuple(one.endpoint(key) for one in self.webhooks)

    @property
    def why_off(self) -> str:
        """Why none is sent; "" while they are."""
        if not self.webhooks:
            return "the setting notify names no webhook"
        return "" if self.outbound else "the setting outbound is off"

    def endpoint_bodies(self) -> list[EndpointBody]:
        return [
            EndpointBody(name=one.name, subjects=sorted(one.subjects) or list(_ALL))
            for one in self.endpoints
        ]

    def retry(self, event_id: str) -> Notification:
        """Have what is not delivered of one sent again now; raises NotFoundError."""
        self._need_endpoints()
        with accountability_transaction(self.folder) as connection:
            return retry_now(connection, event_id, now_ns=time.time_ns())

    def test(self, *, by: str) -> Notification:
        """Write a notification to every endpoint that only shows that they arrive."""
        self._need_endpoints()
        with accountability_transaction(self.folder) as connection:
            added = add_test(connection, self.endpoints, by=by, now_ns=time.time_ns())
            return get_notification(connection, added.hex())

    def _need_endpoints(self) -> None:
        if self.why_off:
            raise NotificationsOff(f"no notification is sent: {self.why_off}")
