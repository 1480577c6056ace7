"""Messages of notifications: what a webhook is sent, and how it is signed.

They are those of the Standard Webhooks specification (https://www.standardwebhooks.com): with the
headers `webhook-id`, which stays the same however often a message is sent, `webhook-timestamp`, and
`webhook-signature`: `v1,` and the base64 of HMAC-SHA256 over `id.timestamp.body`. `text` in the
body is what Slack, and what reads its format, shows.
"""

from __future__ import annotations

import base64
import hmac
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from hansard_collector.webhooks import host_of
from hansard_compiler.terminal import printable
from hansard_store.notifications.deliveries import DueDelivery
from hansard_store.notifications.outbox import Endpoint
from hansard_store.notifications.records import NotificationType
from hansard_store.times import time_text

_NAME_DIGITS: Final = 8
_MOST_NAME_CHARS: Final = 100
_SECRET_PREFIX: Final = "whsec_"
_Data = Mapping[str, Any]
_Name = Callable[[Any], str]


@dataclass(frozen=True, slots=True)
class Webhook:
    """An endpoint of the settings: its address, which is a secret, and what it takes."""

    address: str = field(repr=False)
    subjects: frozenset[str] = frozenset()  # none: all

    def endpoint(self, key: bytes) -> Endpoint:
        """Return it as the store knows it: by its host, and a keyed hash of the address."""
        digest = hmac.digest(key, b"hansard webhook\0" + self.address.encode(), "sha256").hex()
        return Endpoint(f"{host_of(self.address)} {digest[:_NAME_DIGITS]}", self.subjects)


def signing_secret(key: bytes) -> str:
    """Return the secret of a store's messages, from the store's key, as receivers are given it."""
    secret = hmac.digest(key, b"hansard notifications v1", "sha256")
    return _SECRET_PREFIX + base64.b64encode(secret).decode()


def signed_headers(secret: str, event_id: str, body: bytes, *, now_s: int) -> dict[str, str]:
    """Return the headers of Standard Webhooks for a body."""
    key = base64.b64decode(secret.removeprefix(_SECRET_PREFIX))
    signature = hmac.digest(key, f"{event_id}.{now_s}.".encode() + body, "sha256")
    return {
        "webhook-id": event_id,
        "webhook-timestamp": str(now_s),
        "webhook-signature": "v1," + base64.b64encode(signature).decode(),
    }


def message_of(due: DueDelivery, *, pages: str) -> bytes:
    """Return the body of a message: JSON with id, type, timestamp, data, and a text for people.

    `pages` is the address of the pages, for links.
    """
    url = f"{pages}{path_of(due.type, due.data)}"
    body = {
        "type": due.type,
        "id": due.event_id,
        "timestamp": time_text(due.created_ns),
        "data": {**due.data, "url": url},
        "text": f"{text_of(due.type, due.data, name=chat_name)}\n{url}",
    }
    return json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")


def path_of(type: str, data: _Data) -> str:
    """Return the path of the page that a notification is about."""
    for name, path in _PATHS.items():
        if data.get(name):
            return f"{path}{data[name]}"
    return _PATHS_OF_TYPES.get(type, "/notifications")


def text_of(type: str, data: _Data, *, name: _Name = lambda value: str(value)) -> str:
    """Return what a notification says, in one line; `name` writes a recorded name into it."""
    make = _TEXTS.get(type)
    return type if make is None else make(data, name)


_PATHS: Final = {
    "approval_id": "/approvals/", "task_id": "/tasks/", "error_group_id": "/errors/",
}  # fmt: skip
_PATHS_OF_TYPES: Final[Mapping[str, str]] = {
    NotificationType.CHAIN_BROKEN: "/events",
    NotificationType.SCHEMA_ALTERED: "/health",
    NotificationType.DISK_NEARLY_FULL: "/health",
}


def chat_name(value: Any) -> str:
    """Return a name as chat programs show it: as code, in which nothing mentions or links.

    Slack takes what is within <> for markup even there, and has these three entities.
    """
    text = printable(str(value))[:_MOST_NAME_CHARS].replace("`", "'")
    for mark, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;")):
        text = text.replace(mark, entity)
    return f"`{text}`"


def _action(data: _Data, name: _Name) -> str:
    by = f" by {name(data['agent'])}" if data.get("agent") else ""
    return f"{name(data['tool'])}{by}"


def _waiting(data: _Data, name: _Name) -> str:
    names = ", ".join(name(one) for one in data["approvers"])
    return f"Waiting for approval: {_action(data, name)}" + (
        f" (approvers: {names})" if names else ""
    )


def _escalated(data: _Data, name: _Name) -> str:
    names = ", ".join(name(one) for one in data["approvers"])
    return f"Still waiting for approval, now also for {names}: {_action(data, name)}"


_DECISIONS: Final = {"approved": "Approved", "rejected": "Rejected", "revised": "Sent back"}


def _decided(data: _Data, name: _Name) -> str:
    verb = _DECISIONS.get(data["decision"], "Decided")
    return f"{verb} by {name(data['by'])}: {_action(data, name)}"


def _opened(data: _Data, name: _Name) -> str:
    subject = data["subject"]
    about = f"{subject['kind']} {name(subject['name'])}" if subject["name"] else subject["kind"]
    return f"New review: {about}, {name(data['rule'])}, {data['count']:,} times"


def _returned(data: _Data, name: _Name) -> str:
    return f"An error that was closed has returned: {name(data['title'])}"


_TEXTS: Final[Mapping[str, Callable[[_Data, _Name], str]]] = {
    NotificationType.APPROVAL_WAITING: _waiting,
    NotificationType.APPROVAL_ESCALATED: _escalated,
    NotificationType.APPROVAL_DECIDED: _decided,
    NotificationType.APPROVAL_EXPIRED: lambda data, name: (
        f"Expired without a decision: {_action(data, name)}"
    ),
    NotificationType.REVIEW_OPENED: _opened,
    NotificationType.ERROR_RETURNED: _returned,
    NotificationType.CHAIN_BROKEN: lambda data, _: (
        f"The audit log is not as it was written: event {data['event']}"
    ),
    NotificationType.SCHEMA_ALTERED: lambda _data, _name: (
        "The schema of the store was altered by another program: decisions are refused until "
        "`hansard repair` has restored it"
    ),
    NotificationType.DISK_NEARLY_FULL: lambda data, _: (
        f"The disk of the store is nearly full: {data['free_bytes'] >> 20:,} MiB are free"
    ),
    NotificationType.TEST: lambda data, name: f"A test notification, sent by {name(data['by'])}",
}
