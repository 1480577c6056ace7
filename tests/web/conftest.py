"""Fixtures of the web tests: a store with runs, an app over it, a server, a browser."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import uvicorn
from fastapi import FastAPI
from playwright.sync_api import Browser, Page, sync_playwright
from starlette.testclient import TestClient

from hansard_collector.pipeline.ingest_queue import Pipeline
from hansard_collector.pipeline.redaction import RetentionPolicy
from hansard_collector.pipeline.requests import Ingest
from hansard_compiler.redaction.redactor import Redactor
from hansard_web.app.application import create_app
from hansard_web.app.config import WebSettings
from tests.browser import LAUNCH_ARGUMENTS, chromium_path
from tests.signing import People, session_of
from tests.web.comparisons import World, made_world
from tests.web.makers import RunMaker

MakeClient = Callable[..., TestClient]


@pytest.fixture
def runs(tmp_path: Path) -> Iterator[RunMaker]:
    """An empty store, to be filled with runs."""
    maker = RunMaker(tmp_path / "data")
    yield maker
    maker.close()


@pytest.fixture
def pipeline(runs: RunMaker) -> Iterator[Pipeline]:
    """The real pipeline over the store."""
    retention = RetentionPolicy("redacted_payloads", Redactor(runs.folder.key()))
    pipeline = Pipeline(runs.folder, retention)
    pipeline.start()
    yield pipeline
    pipeline.close()


@pytest.fixture
def make_client(runs: RunMaker) -> Iterator[MakeClient]:
    """Makes clients of apps with given settings; nothing follows a redirect."""
    with ExitStack() as clients:

        def make(settings: WebSettings | None = None, ingest: Ingest | None = None) -> TestClient:
            chosen = settings or WebSettings()
            app = create_app(runs.folder, ingest, chosen)
            client = TestClient(
                app,
                base_url="http://localhost",
                follow_redirects=False,
                raise_server_exceptions=False,
            )
            if not chosen.tokens:
                client.auth = People(runs.folder)
            return clients.enter_context(client)

        yield make


@pytest.fixture
def client(make_client: MakeClient) -> TestClient:
    """A browser at an app without tokens of its configuration, in which a person is signed in."""
    made = make_client()
    made.cookies.update(session_of(made.app.state.site.folder))  # type: ignore[attr-defined]
    return made


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Runs to be compared, sent through the real pipeline once; tests add runs, and change none."""
    yield from made_world(tmp_path_factory.mktemp("compared") / "data")


class Served:
    """An app behind a real server on a port of its own."""

    def __init__(self, app: FastAPI) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.app = app
        config = uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            proxy_headers=False,
            ws="none",
        )
        self._server = uvicorn.Server(config)
        self._is_up = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        self._is_up.set()
        self._server.run(sockets=[self._socket])

    def __enter__(self) -> Served:
        # The socket listens already: a first request waits in its backlog until the server is up.
        self._thread.start()
        self._is_up.wait()
        return self

    def __exit__(self, *_: object) -> None:
        self.app.state.site.feed.close()
        self.app.state.accounts.watch.close()
        self._server.should_exit = True
        self._thread.join()
        self._socket.close()


@pytest.fixture
def served(runs: RunMaker) -> Iterator[Served]:
    """The app of the store on a real port."""
    with Served(create_app(runs.folder, None, WebSettings())) as server:
        yield server


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A real Chromium, gone before another module's tests: while it is driven, its event loop
    counts as running in this thread, and nobody else can run one.
    """
    path = chromium_path()
    assert path, "no Chromium; python tests/browser.py installs one"
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=list(LAUNCH_ARGUMENTS))
        yield chromium
        chromium.close()


@pytest.fixture
def page(browser: Browser, served: Served) -> Iterator[Page]:
    """A tab whose console must stay silent and which may ask nobody but the server."""
    complaints: list[str] = []
    context = browser.new_context(base_url=served.url, viewport={"width": 1440, "height": 900})
    context.add_cookies(
        [
            {"name": name, "value": value, "url": served.url}
            for name, value in session_of(served.app.state.site.folder).items()
        ]
    )
    tab = context.new_page()
    tab.on("console", lambda message: complaints.append(f"{message.type}: {message.text}"))
    tab.on("pageerror", lambda error: complaints.append(f"uncaught: {error}"))

    def is_foreign(url: str) -> bool:
        return not url.startswith((served.url, "data:", "blob:"))

    tab.on("request", lambda asked: complaints.append(asked.url) if is_foreign(asked.url) else None)
    yield tab
    context.close()
    assert complaints == []
