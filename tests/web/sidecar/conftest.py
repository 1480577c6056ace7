"""Fixtures of the sidecar's tests: the real app over a real store, told things over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from httpx2 import Response
from starlette.testclient import TestClient

from hansard_collector.pipeline.ingest_queue import Pipeline
from hansard_collector.pipeline.redaction import RetentionPolicy
from hansard_compiler.redaction.redactor import Redactor
from hansard_compiler.retention_modes import RetentionMode
from hansard_web.app.application import create_app
from hansard_web.app.config import WebSettings
from tests.signing import People
from tests.store.empty import empty_store

Json = dict[str, Any]


class Agent:
    """A program that tells a server what it does."""

    def __init__(self, client: TestClient) -> None:
        self.client = client

    def post(self, path: str, body: Any = None, **headers: str) -> Response:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.client.post(path, json={} if body is None else body, headers=named)

    def put(self, path: str, body: Any, **headers: str) -> Response:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.client.put(path, json=body, headers=named)

    def tell(self, path: str, body: Any = None, **headers: str) -> Json:
        """Post what must be taken, and return the answer."""
        answer = self.post(path, body, **headers)
        assert answer.is_success, answer.text
        told: Json = answer.json()
        return told

    def start(self, **body: Any) -> str:
        run_id: str = self.tell("/v1/runs/start", {"agent_name": "clerk", **body})["run_id"]
        return run_id

    def get(self, path: str) -> Json:
        answer = self.client.get(path)
        assert answer.is_success, answer.text
        told: Json = answer.json()
        return told

    def step(self, step_id: str) -> Json:
        return self.get(f"/v1/steps/{step_id}")


class House:
    """A store, and servers over it that come and go."""

    def __init__(self, path: Path) -> None:
        self.folder = empty_store(path)
        self._open = ExitStack()

    def serve(self, settings: WebSettings | None = None) -> Agent:
        """Start a server, ended by `stop`, and return a client of it."""
        chosen = settings or WebSettings()
        retention = RetentionPolicy(RetentionMode(chosen.retention), Redactor(self.folder.key()))
        pipeline = Pipeline(self.folder, retention)
        pipeline.start()
        self._open.callback(pipeline.close)
        client = TestClient(
            create_app(self.folder, pipeline, chosen),
            base_url="http://localhost",
            raise_server_exceptions=False,
        )
        if not chosen.tokens:
            client.auth = People(self.folder)
        return Agent(self._open.enter_context(client))

    def stop(self) -> None:
        self._open.close()


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    """A store without a server."""
    made = House(tmp_path / "data")
    yield made
    made.stop()


@pytest.fixture
def agent(house: House) -> Agent:
    """A client of a server without tokens."""
    return house.serve()
