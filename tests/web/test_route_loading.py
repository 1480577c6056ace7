"""An app whose routes are loaded later: the same answers, and the first page without the rest."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from fastapi import FastAPI
from starlette.routing import BaseRoute
from starlette.testclient import TestClient

from hansard_web.app.application import create_app
from hansard_web.app.config import WebSettings
from hansard_web.app.route_loading import RouteLoading
from tests.store.empty import empty_store


@pytest.fixture
def app(tmp_path: Path) -> FastAPI:
    return create_app(empty_store(tmp_path / "data"), None, WebSettings(), loads="later")


@pytest.fixture
def client(app: FastAPI) -> Iterator[TestClient]:
    with TestClient(app, base_url="http://127.0.0.1") as made:
        yield made


def is_loaded(app: FastAPI) -> bool:
    return not any(isinstance(one, RouteLoading) for one in app.router.routes)


def of(routes: list[BaseRoute]) -> list[str]:
    return [f"{type(one).__name__} {getattr(one, 'path', '')}" for one in routes]


def test_the_first_page_and_what_it_links_need_no_other_route(
    app: FastAPI, client: TestClient
) -> None:
    page = client.get("/")
    style = next(one for one in page.text.split('"') if one.endswith(".css"))
    found = [client.get(path).status_code for path in (style, "/signin", "/healthz")]

    assert page.status_code == 200
    assert found == [200, 200, 200]
    assert not is_loaded(app)


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/v1/runs", 200),
        ("GET", "/approvals", 200),
        ("GET", "/v1/openapi.json", 200),
        ("GET", "/openapi.json", 200),
        ("GET", "/nowhere", 404),
        ("GET", "/v1/runs/nothing", 404),
        ("PUT", "/", 405),
        ("POST", "/v1/runs", 405),
        ("HEAD", "/health", 200),
    ],
)
def test_any_other_request_loads_the_routes_and_finds_its_own(
    app: FastAPI, client: TestClient, method: str, path: str, status: int
) -> None:
    first = client.request(method, path)
    again = client.request(method, path)

    assert (first.status_code, again.status_code) == (status, status)
    assert is_loaded(app)


def test_requests_at_once_load_once_and_the_routes_are_those_of_any_app(
    app: FastAPI, client: TestClient, tmp_path: Path
) -> None:
    paths = ["/v1/runs", "/usage", "/memory", "/v1/tasks"] * 4

    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(client.get, paths))

    other = create_app(empty_store(tmp_path / "other"), None, WebSettings())
    assert {one.status_code for one in answers} == {200}
    assert of(app.router.routes) == of(other.router.routes)
    other.state.site.close()


def test_a_server_that_is_asked_for_nothing_loads_them_by_itself(app: FastAPI) -> None:
    loading: RouteLoading = app.state.loading
    with loading.working():
        deadline_s = time.monotonic() + 60
        while not is_loaded(app) and time.monotonic() < deadline_s:
            threading.Event().wait(0.05)
        loaded = is_loaded(app)
    app.state.services.close()
    app.state.site.close()

    assert loaded


def test_a_server_that_ends_at_once_does_not_wait_for_them(app: FastAPI) -> None:
    began_s = time.monotonic()
    with app.state.loading.working():
        pass
    app.state.site.close()

    assert time.monotonic() - began_s < 1
    assert not is_loaded(app)
