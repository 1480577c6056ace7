"""ApprovalService as a server has it: the store's facade, the server's policy, who waits."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from typing import Annotated

import apsw
from starlette.requests import Request

from hansard_compiler.errors import HansardError
from hansard_compiler.retention_modes import RetentionMode
from hansard_store.approvals.service import ApprovalService
from hansard_store.audit.schedule import SealSchedule
from hansard_store.principals.authority import ME
from hansard_store.principals.model import Principal
from hansard_web.app.site import Site
from hansard_web.audit.chain_state import HeadKeeper, Tell, telling
from hansard_web.live import StoreWatch
from hansard_web.policy.decider import RecordingDecider
from hansard_web.policy.service import policy_of
from hansard_web.principals.dependencies import of_app, principal_of
from hansard_web.sidecar.recorder import Outlet
from hansard_web.ui.format import plural

_EVERY_S = 2.0
_FAILURES_S = 60.0  # between two events of failed attempts
_log = logging.getLogger("hansard.approvals")


class Accounts:
    """Approvals and events of one app; closed when the app stops."""

    def __init__(
        self,
        store: ApprovalService,
        site: Site,
        notify_head: Tell | None = None,
    ) -> None:
        self.store = store
        self._principals, self._attempts = site.principals, site.attempts
        self._next_s = 0.0
        self.heads = HeadKeeper(store, notify_head)
        self.seals = SealSchedule(store.seal)
        self.watch = StoreWatch(site.folder)
        self._stop = threading.Event()
        self._worker = threading.Thread(target=self._work, name="hansard-approvals", daemon=True)

    def acting(self, principal: Principal | None) -> Accounts:
        """Return the same as a principal uses it; None: a request without a credential."""
        other = copy(self)
        other.store = self.store.acting(principal)
        return other

    def close(self) -> None:
        """End what waits and what works, then close the store."""
        self.watch.close()
        self._stop.set()
        if self._worker.is_alive():
            self._worker.join()
        self.store.close()

    @contextmanager
    def working(self) -> Iterator[None]:
        """Expire and escalate what is due, and find what gone processes left, while it lasts."""
        self._worker.start()
        try:
            yield
        finally:
            self._stop.set()
            self._worker.join()

    def _look_at_principals(self) -> None:
        """Write down which tokens were used and, at most once a minute, what failed."""
        self._principals.flush_uses()
        now_s = time.monotonic()
        if now_s < self._next_s or (failed := self._attempts.take()) is None:
            return
        self._next_s = now_s + _FAILURES_S
        message = (
            f"{plural(failed.count, 'attempt')} to authenticate failed, "
            f"from {plural(failed.addresses, 'address')}"
        )
        _log.warning("%s", message)
        self.store.failed("authenticate", message, subject="principals")

    def _work(self) -> None:
        while True:
            try:
                self.store.settle_quietly()
                self.store.recover_quietly()
                self.heads.look()
                self._look_at_principals()
                self.seals.look()
            except (HansardError, apsw.Error) as error:
                _log.warning("approvals are looked after later: %s", error)
            if self._stop.wait(_EVERY_S):
                return


def make_accounts(site: Site, decider: RecordingDecider, outlet: Outlet | None) -> Accounts:
    """Return the accountability of an app, judged by the policy of its decider.

    The head of its log is recorded through `outlet`, where the app records its own traces.
    """
    store = ApprovalService(
        site.folder,
        retention=RetentionMode(site.settings.retention),
        policy=policy_of(decider.rules, decider.retention, site.folder),
        source="api",
        heads_copy=site.settings.heads_copy,
        decide=site.settings.decide_mode,
    )
    notify_head = None if outlet is None else telling(outlet)
    return Accounts(store, site, notify_head)


def person(request: Request, named: str | None) -> str:
    """Return the author of what decides nothing: the name in the request, or the principal."""
    principal = principal_of(request)
    return named or (ME if principal is None else principal.name)


AccountsDep = Annotated[Accounts, of_app("accounts", is_acting=True)]
