"""Accountability as a server has it: the store's facade, the server's policy, who waits."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import apsw
from fastapi import Depends
from starlette.requests import Request

from hansard_compiler.errors import HansardError
from hansard_compiler.retention import RetentionMode
from hansard_store.facade import Accountability
from hansard_web.head_keeping import HeadKeeper, Tell, telling
from hansard_web.policy_asking import PolicyDesk
from hansard_web.policy_judging import policy_of
from hansard_web.settings import Token
from hansard_web.sidecar.recording import Outlet
from hansard_web.site import Site
from hansard_web.store_watch import StoreWatch

_EVERY_S = 2.0
_log = logging.getLogger("hansard.approvals")


class Accounts:
    """Approvals and events of one app; closed when the app stops."""

    def __init__(
        self, store: Accountability, watch: StoreWatch, tell_head: Tell | None = None
    ) -> None:
        self.store = store
        self.heads = HeadKeeper(store, tell_head)
        self.watch = watch
        self._stop = threading.Event()
        self._worker = threading.Thread(target=self._work, name="hansard-approvals", daemon=True)

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

    def _work(self) -> None:
        while True:
            try:
                self.store.settle_quietly()
                self.store.recover_quietly()
                self.heads.look()
            except (HansardError, apsw.Error) as error:
                _log.warning("approvals are looked after later: %s", error)
            if self._stop.wait(_EVERY_S):
                return


def make_accounts(site: Site, desk: PolicyDesk, outlet: Outlet | None) -> Accounts:
    """Return the accountability of an app, judged by the policy of its desk.

    The head of its log is told through `outlet`, where the app stores what is told.
    """
    store = Accountability(
        site.folder,
        retention=RetentionMode(site.settings.retention),
        policy=policy_of(desk.book, desk.keeper, site.folder),
        source="api",
        heads_copy=site.settings.heads_copy,
    )
    tell_head = None if outlet is None else telling(outlet)
    return Accounts(store, StoreWatch(site.folder), tell_head)


def person(request: Request, named: str | None) -> str:
    """Return who decides: the name that was given, else what is known of the token."""
    if named:
        return named
    token: Token | None = request.scope["state"].get("token")
    return "me" if token is None else f"token {'+'.join(sorted(token.scopes))}"


# async: see `site_of`.
async def accounts_of(request: Request) -> Accounts:
    """Return the accountability of the app that serves a request."""
    accounts: Accounts = request.app.state.accounts
    return accounts


AccountsDep = Annotated[Accounts, Depends(accounts_of)]
