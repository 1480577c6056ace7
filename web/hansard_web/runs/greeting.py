"""The page of an empty store: how to send the first span, and a wait for it."""

from __future__ import annotations

from dataclasses import dataclass

import apsw

from hansard._clients.instrumentors import NODE, PYTHON, Setup
from hansard_collector.log_sessions.unread import UnreadLogs, unread_logs
from hansard_store.runs.queries import last_change
from hansard_web.app.settings import WebSettings


@dataclass(frozen=True, slots=True)
class Greeting:
    """Addresses for the snippets; `grpc` is None where this process has no gRPC door."""

    http: str
    grpc: str | None
    needs_token: bool
    unread: tuple[UnreadLogs, ...] = ()  # agents whose log records made no run
    setups: tuple[Setup, ...] = (PYTHON, NODE)
    live_url: str = "/live/runs?after=0&newest=0"


def greeting_of(connection: apsw.Connection, settings: WebSettings) -> Greeting | None:
    """Return the greeting of an empty store, None as soon as it holds a run."""
    if last_change(connection):
        return None
    return Greeting(
        http=f"{'https' if settings.secure_cookies else 'http'}://{settings.http_address}",
        grpc=settings.grpc_address,
        needs_token=bool(settings.tokens),
        unread=tuple(unread_logs(connection)),
    )
