"""Which token opens which route: all routes of the app are walked, and a new one must be listed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

import pytest
from starlette.routing import BaseRoute
from starlette.testclient import TestClient

from hansard_collector.pipeline.ingest_queue import Pipeline
from hansard_collector.receivers import http as otlp
from hansard_web.app.config import AccessToken, Scope, WebSettings
from tests.web.conftest import MakeClient
from tests.web.html import parse

OPEN: Final = "open"
OTLP: Final = ("/v1/logs", "/v1/metrics", "/v1/traces")

# What changes something, or costs something, and the scope that it takes.
CHANGES: Final = {
    "POST /approvals/{approval_id}": "decide",
    "DELETE /mcp": "read",
    "POST /mcp": "read",
    "POST /memory/{memory_id}/accept": "decide",
    "POST /memory/{memory_id}/unsupersede": "decide",
    "POST /memory/{memory_id}/invalidate": "decide",
    "POST /replay/{step_id}": "decide",
    "POST /replay/{step_id}/preview": "read",
    "POST /replays/{replay_id}/continue": "decide",
    "POST /signin": OPEN,
    "POST /messages": "read",
    "POST /signout": "read",
    "POST /tasks/{task_id}": "decide",
    "POST /errors/{error_id}": "decide",
    "POST /reports/{name}/ack": "decide",
    "POST /v1/reports/{name}/ack": "decide",
    "POST /theme": "read",
    "POST /times": "read",
    "POST /v1/approvals": "ingest",
    "POST /v1/approvals/{approval_id}/approve": "decide",
    "POST /v1/approvals/{approval_id}/claim": "ingest",
    "POST /v1/approvals/{approval_id}/reject": "decide",
    "POST /v1/approvals/{approval_id}/repropose": "ingest",
    "POST /v1/approvals/{approval_id}/result": "ingest",
    "POST /v1/approvals/{approval_id}/revise": "decide",
    "POST /v1/approvals/{approval_id}/settle": "decide",
    "POST /v1/approvals/{approval_id}/undo": "decide",
    "POST /v1/compile": "ingest",
    "POST /v1/events": "ingest",
    "POST /v1/memory/accept": "decide",
    "POST /v1/memory/unsupersede": "decide",
    "POST /v1/memory/invalidate": "decide",
    "POST /v1/memory/invalidate/approved": "ingest",
    "POST /v1/memory/purge": "admin",
    "POST /v1/memory/read": "read",
    "POST /annotations": "decide",
    "POST /annotations/{annotation_id}/withdraw": "decide",
    "POST /v1/annotations": "decide",
    "POST /v1/annotations/{annotation_id}/withdraw": "decide",
    "POST /v1/scores": "ingest",
    "POST /v1/memory/write": "ingest",
    "POST /v1/model/call": "ingest",
    "PUT /v1/payloads/{ref}": "ingest",
    "POST /v1/policy/check": "ingest",
    "POST /v1/policy/explain": "read",
    "PUT /v1/policy/rules": "admin",
    "POST /v1/replay": "decide",
    "POST /v1/replay/preview": "read",
    "POST /v1/replay/{replay_id}/continue": "decide",
    "POST /v1/runs/start": "ingest",
    "POST /v1/runs/{run_id}/end": "ingest",
    "POST /v1/runs/{run_id}/steps": "ingest",
    "POST /v1/notifications/test": "decide",
    "POST /v1/notifications/{notification_id}/retry": "decide",
    "POST /notifications/test": "decide",
    "POST /notifications/{notification_id}/retry": "decide",
    "POST /v1/tasks/{task_id}/decide": "decide",
    "POST /v1/views": "decide",
    "POST /v1/views/rename": "decide",
    "POST /v1/views/delete": "decide",
    "POST /views": "decide",
    "POST /views/rename": "decide",
    "POST /views/delete": "decide",
    "POST /v1/errors/{error_id}/decide": "decide",
    "POST /v1/tools/call": "ingest",
    "POST /v1/tools/result": "ingest",
    "POST /v1/transcripts": "ingest",
    "POST /v1/transcripts/{branch_id}/end": "ingest",
    "POST /v1/transcripts/{log_id}": "ingest",
    "POST /v1/transcripts/{log_id}/branches": "ingest",
    "POST /v1/transcripts/{log_id}/check": "read",
    "POST /v1/transcripts/{log_id}/fold": "ingest",
    "POST /v1/transcripts/{log_id}/redactions": "admin",
    "POST /v1/logs": "ingest",
    "POST /v1/metrics": "ingest",
    "POST /v1/traces": "ingest",
}
# Of those that only read: all others take `read`.
OPEN_READS: Final = frozenset(
    {"/healthz", "/signin", "/signin/link/{code}", "/static/{build}/{path:path}"}
)
SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})


def routes_of(routes: Sequence[BaseRoute]) -> Iterator[tuple[str, str]]:
    """Yield (method, path) of every route, those of included routers too."""
    for route in routes:
        if type(route).__module__ == otlp.__name__:  # one route for all of its paths
            yield from (("POST", path) for path in OTLP)
            continue
        inner: Any = getattr(route, "effective_route_contexts", None)
        for one in [route] if inner is None else inner():
            path = getattr(one, "path", None)
            assert isinstance(path, str), f"a route of a kind that is not walked: {one!r}"
            methods = getattr(one, "methods", None)
            assert methods, f"{path} answers methods that nobody listed"
            yield from ((method, path) for method in methods)


@pytest.fixture
def guarded(make_client: MakeClient, pipeline: Pipeline) -> TestClient:
    tokens = tuple(AccessToken(f"{one}-secret-token", frozenset({one})) for one in Scope)
    return make_client(WebSettings(tokens=tokens), pipeline)


def bearer(scope: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {scope}-secret-token"}


def is_let_in(client: TestClient, method: str, path: str, headers: dict[str, str]) -> bool:
    """Whether a request came past the gate: whatever the route says of it then."""
    filled = re.sub(r"\{[^}]+\}", "00000000", path)
    answer = client.request(method, filled, headers={"Accept": "application/json", **headers})
    if answer.status_code == 303:
        return not answer.headers["location"].startswith("/signin?next=")
    refused = b"needed here" if path in OTLP else b"scope_missing"
    return answer.status_code != 401 and refused not in answer.content


def test_every_route_that_changes_something_takes_the_scope_that_is_listed(
    guarded: TestClient,
) -> None:
    found = set(routes_of(guarded.app.router.routes))  # type: ignore[attr-defined]
    changing = {f"{method} {path}" for method, path in found if method not in SAFE}
    assert changing == set(CHANGES)

    for route, needed in CHANGES.items():
        method, _, path = route.partition(" ")
        let_in = {one for one in Scope if is_let_in(guarded, method, path, bearer(one))}
        wanted = set(Scope) if needed == OPEN else {Scope(needed), Scope.ADMIN}
        assert let_in == wanted, route
        assert is_let_in(guarded, method, path, {}) is (needed == OPEN), route


def test_no_route_is_read_without_the_scope_to_read(guarded: TestClient) -> None:
    found = set(routes_of(guarded.app.router.routes))  # type: ignore[attr-defined]
    paths = {path for method, path in found if method == "GET"}
    streams = {path for path in paths if path.startswith("/live/")}
    assert paths >= OPEN_READS
    assert len(streams) >= 2

    for path in paths:
        refused = (Scope.INGEST, Scope.DECIDE)
        let_in = {one for one in refused if is_let_in(guarded, "GET", path, bearer(one))}
        assert let_in == (set(refused) if path in OPEN_READS else set()), path
        assert is_let_in(guarded, "GET", path, {}) is (path in OPEN_READS), path


def test_every_form_of_a_page_wants_its_own_token(guarded: TestClient) -> None:
    forms = [route for route in CHANGES if not route.partition(" ")[2].startswith(("/v1/", "/mcp"))]
    assert len(forms) >= 8

    for route in forms:
        path = re.sub(r"\{[^}]+\}", "00000000", route.partition(" ")[2])
        answer = guarded.post(path, data={"csrf": "0" * 64}, headers=bearer("admin"))
        assert answer.status_code in (403, 422), route
        if answer.status_code == 403:
            assert "not of this page" in parse(answer.text).one("main").text, route


@pytest.mark.parametrize(
    "path",
    [
        "/v1/approvals/00000000/approve\n",
        "/v1/approvals/00000000/approve/",
        "/v1/approvals/00000000%2Fapprove",
        "//v1/approvals/00000000/approve",
        "/V1/approvals/00000000/approve",
        "/v1/traces/../approvals/00000000/approve",
        "/healthz/../v1/approvals/00000000/approve",
        "/static/../v1/approvals/00000000/approve",
        "/v1/memory/purge\n",
        "/v1/memory/read/../purge",
    ],
)
def test_no_other_way_to_write_a_path_opens_more(guarded: TestClient, path: str) -> None:
    path = path.replace("\n", "%0A")
    for scope in ("ingest", "read"):
        answer = guarded.post(path, json={"by": "eve", "memory_id": "0"}, headers=bearer(scope))
        assert answer.status_code in (403, 404, 405), answer.text
