"""The person of the demo: reads what a call would do, and decides through the API as rosa."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass, field
from typing import Any, Final

from hansard_store.database.data_folder import DataFolder
from hansard_store.principals.errors import UnknownToken
from hansard_store.principals.model import CLAIMED, Scope
from hansard_store.principals.service import Principals
from hansard_web.app.server_file import Endpoints
from hansard_web.demo.story import Api, DemoFailed

NAME: Final = "rosa"
NOTE: Final = (
    "This hides the cent instead of finding it. Round once, at the end: CONVENTIONS.md says so."
)
_LOOK_S: Final = 0.1


@dataclass(frozen=True, slots=True)
class Person:
    """Who decides: a token, and an address that signs a browser in until the server stops."""

    token: str = field(repr=False)
    link: str = field(repr=False)


def person_at(endpoints: Endpoints) -> Person:
    """Return the reviewer at a server, with a new token: one of an earlier demo is revoked."""
    with closing(Principals(DataFolder(endpoints.data))) as principals:
        with suppress(UnknownToken):
            principals.revoke(NAME, by=CLAIMED, who="demo")
        token = principals.add(NAME, frozenset({Scope.DECIDE}), by=CLAIMED, who="demo")
        code = principals.add_link(NAME, server=endpoints.instance, is_once=False)
    return Person(token, f"{endpoints.http}/signin/link/{code}")


class Reviewer(threading.Thread):
    """Decides on every call of one agent that waits, until it is stopped."""

    def __init__(
        self, api: Api, *, pace_s: float, on_decision: Callable[[str, dict[str, Any]], None]
    ) -> None:
        super().__init__(name="reviewer", daemon=True)
        self._api = api
        self._pace_s = pace_s
        self._on_decision = on_decision
        self._home = threading.Event()

    def go_home(self) -> None:
        """Decide no more; raises nothing."""
        self._home.set()
        self.join()

    def run(self) -> None:
        while not self._home.wait(_LOOK_S):
            try:
                waiting = self._api.get("/v1/approvals", status="awaiting")["items"]
            except DemoFailed:
                return  # the server went away: the demo says so
            for approval in waiting:
                time.sleep(self._pace_s)  # a person reads
                self._decide(approval)

    def _decide(self, approval: dict[str, Any]) -> None:
        path = f"/v1/approvals/{approval['approval_id']}"
        # A patch has to round; one note is enough, and what comes after it is for the tests to say.
        patch = approval["arguments"].get("new")
        is_good = patch is None or "round_cents(" in patch or approval["revision"] > 1
        if is_good:
            decided = self._api.post(f"{path}/approve", {"revision": approval["revision"]})
        else:
            decided = self._api.post(f"{path}/revise", {"note": NOTE})
        self._on_decision("approved" if is_good else "sent back", decided)
