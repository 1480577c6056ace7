"""The API as a program sees it: OTLP goes in over HTTP, and every answer fits its description."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from httpx2 import Response
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from pydantic import BaseModel
from starlette.testclient import TestClient

from hansard_collector.pipeline.ingest_queue import Pipeline
from hansard_collector.pipeline.redaction import RetentionPolicy
from hansard_compiler.redaction.redactor import Redactor
from hansard_store.database.data_folder import DataFolder
from hansard_web.api.openapi import model_of
from hansard_web.app.application import create_app
from hansard_web.app.config import WebSettings
from hansard_web.app.problems import Error
from hansard_web.app.route_loading import api_routes
from tests.signing import People
from tests.store.empty import empty_store
from tests.web.answers import check_fits

Json = dict[str, Any]
_PROTOBUF = {"content-type": "application/x-protobuf"}


@dataclass
class Api:
    """A client of one app over one store, with the real pipeline behind it."""

    folder: DataFolder
    http: TestClient
    pipeline: Pipeline

    def send(self, request: ExportTraceServiceRequest | ExportLogsServiceRequest) -> None:
        """Post OTLP; returns when it is committed."""
        signal = "logs" if isinstance(request, ExportLogsServiceRequest) else "traces"
        answer = self.http.post(
            f"/v1/{signal}", content=request.SerializeToString(), headers=_PROTOBUF
        )
        assert (answer.status_code, answer.content) == (200, b"")

    def get(self, path: str, /, **query: Any) -> Json:
        """Return the body of a 200 answer that fits its model."""
        answer = self.http.get(path, params=query)
        assert answer.status_code == 200, answer.text
        return self.checked(answer)

    def refused(self, status: int, path: str, /, **query: Any) -> Json:
        """Return the error object of an answer with this status."""
        answer = self.http.get(path, params=query)
        assert answer.status_code == status, answer.text
        return self.error_of(answer)

    def error_of(self, answer: Response) -> Json:
        body: Json = answer.json()
        check_fits(Error, body)
        error: Json = body["error"]
        return error

    def items(self, path: str, /, *, cursor: str = "cursor", **query: Any) -> list[Json]:
        """Return all pages of a list."""
        found: list[Json] = []
        while True:
            page = self.get(path, **query)
            found += page["items"]
            if page["next_cursor"] is None:
                return found
            query[cursor] = page["next_cursor"]

    def checked(self, answer: Response) -> Json:
        """Return the body of an answer that fits the model of its route and status."""
        assert answer.headers["content-type"] == "application/json"
        body: Json = json.loads(answer.content)
        asked = answer.request
        route = next(
            route
            for route in api_routes()
            if asked.method in (route.methods or ()) and route.path_regex.match(asked.url.path)
        )
        model: type[BaseModel] = model_of(route.responses[answer.status_code])
        check_fits(model, body)
        return body


def make_api(path: Path, *, retention: str = "full_payloads") -> Iterator[Api]:
    """Yield an API over a store in a folder of its own."""
    folder = empty_store(path)
    pipeline = Pipeline(folder, RetentionPolicy(retention, Redactor(folder.key())))
    pipeline.start()
    app = create_app(folder, pipeline, WebSettings(retention=retention))
    with TestClient(app, base_url="http://localhost", raise_server_exceptions=False) as client:
        client.auth = People(folder)
        yield Api(folder, client, pipeline)
    pipeline.close()


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Api]:
    yield from make_api(tmp_path / "data")


@pytest.fixture
def other_api(tmp_path: Path) -> Iterator[Api]:
    """A second store, to import into."""
    yield from make_api(tmp_path / "other")


@pytest.fixture(params=["redacted_payloads", "metadata_only"])
def sparing_api(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Api]:
    """A store that does not keep everything."""
    yield from make_api(tmp_path / "sparing", retention=request.param)
