"""A store, a server over it, a provider on this machine, and programs that call it in a run."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from httpx2 import Response
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from starlette.testclient import TestClient

import hansard
from hansard import instrument_client
from hansard._runtime import recorder as _state
from hansard_collector.pipeline.ingest_queue import Pipeline
from hansard_collector.pipeline.redaction import RetentionPolicy
from hansard_compiler.providers.adapter import Adapter
from hansard_compiler.providers.registry import AdapterSettings, adapter_for
from hansard_compiler.providers.scripted import read_script
from hansard_compiler.providers.transport.vendor_sdk import Connection
from hansard_store.content.retention import Retention
from hansard_store.database.data_folder import DataFolder
from hansard_store.database.readers import open_reader
from hansard_web.app.application import create_app
from hansard_web.app.config import WebSettings
from hansard_web.replay.engine import Replays
from hansard_web.sidecar.recorder import Outlet
from tests.instrumentation.clients.asking import Api
from tests.instrumentation.clients.provider import Provider, providing
from tests.signing import People

Json = dict[str, Any]
NOW = "2026-11-22T12:00:00Z"
MODELS = {
    "openai": "gpt-6-luna",
    "anthropic": "claude-haiku-5-5",
    "openai_compatible": "local-7b",
    "scripted": "scripted-1",
}
SCRIPT: Json = {
    "hansard_script": 1,
    "model": "scripted-1",
    "answers": [
        {"when": {"any_contains": "almanac"}, "say": "The almanac says: in the post."},
    ],
    "otherwise": {"say": "In the post."},
}
TOOL: Json = {
    "name": "get",
    "description": "Get an order.",
    "parameters": {"type": "object", "properties": {"k": {"type": "integer"}}},
}


def item(item_id: str, kind: str = "file", content: Any = None, **more: Any) -> Json:
    """Return a context item that came from a file."""
    return {
        "id": item_id,
        "kind": kind,
        "content": f"text of {item_id}" if content is None else content,
        "source_ref": {"source_type": "file", "uri": f"docs/{item_id}.md"},
        "created_at": NOW,
        **more,
    }


ITEMS: list[Any] = [
    item("rules", "system", "You are a clerk."),
    item("almanac", content="the almanac tells of tides " * 20, importance_score=0.1),
    item("orders", content="Order 7: in the post.", importance_score=0.9),
    {"role": "user", "content": "Where is order 7?"},
]
MEMORY: Json = {
    "id": "likes-short",
    "memory_type": "preference",
    "subject": "answers",
    "content": "Likes short answers.",
    "confidence": 0.9,
}


class Stage:
    """Everything of one test module."""

    def __init__(self, path: Path, provider: Provider, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = DataFolder(path)
        self.folder.create()
        self.provider = provider
        self._open = ExitStack()
        self.keys(monkeypatch)
        self._retention = "redacted_payloads"
        self.client = self.serve()

    def keys(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("OPENAI_API_KEY", "key")
        monkeypatch.setenv("OPENAI_BASE_URL", f"{self.provider.address}/v1")
        monkeypatch.setenv("ANTHROPIC_API_KEY", "key")
        monkeypatch.setenv("ANTHROPIC_BASE_URL", self.provider.address)

    def serve(self, settings: WebSettings | None = None) -> TestClient:
        chosen = settings or WebSettings(
            model_server=f"{self.provider.address}/v1", retention=self._retention
        )
        retention = Retention.of(self.folder, chosen.retention)
        pipeline = Pipeline(self.folder, RetentionPolicy(retention.mode, retention.redactor))
        pipeline.start()
        self._open.callback(pipeline.close)
        self.outlet = Outlet(self.folder, pipeline, retention)
        self.app = create_app(self.folder, pipeline, chosen)
        client = TestClient(self.app, base_url="http://localhost", raise_server_exceptions=False)
        if not chosen.tokens:
            client.auth = People(self.folder)
        self.client = self._open.enter_context(client)
        return self.client

    def close(self) -> None:
        self._open.close()

    # ---- programs

    @contextmanager
    def program(self, name: str = "clerk") -> Iterator[None]:
        """What is done in here is done by a program with the SDK, in a run of its own."""
        recording = self.outlet.recording(Resource())
        before = _state.active()
        _state.install(recording.recorder)
        try:
            with hansard.start_run(name, "support"):
                yield
        finally:
            _state.install(before)
            recording.save()

    def adapter(self, provider: str, *, script: Json | None = None) -> Adapter:
        base = self.provider.address + ("" if provider == "anthropic" else "/v1")
        lines = None
        if provider == "scripted":
            lines = read_script(json.dumps(script or SCRIPT).encode())
        connection = Connection(api_key="key", base_url=base, max_retries=0, timeout_s=5)
        settings = AdapterSettings(connection=connection, script=lines, preflight="off")
        return adapter_for(provider, settings)

    def compiled_call(self, provider: str = "scripted", **more: Any) -> str:
        """Compile and ask in a run; returns the step of the call."""
        call = {name: more.pop(name) for name in ("stream", "temperature") if name in more}
        with self.program():
            adapter = self.adapter(provider)
            compiled = hansard.compile_step(
                inputs=more.pop("items", ITEMS),
                **{
                    "model": MODELS[provider],
                    "provider": adapter,
                    "token_budget": 600,
                    "response_reserve": 100,
                    "now": NOW,
                    "tools": [TOOL],
                    **more,
                },
            )
            answer = hansard.call_model(compiled, provider=adapter, **call)
            adapter.close()
        return answer.recorded.step_id

    def http_call(self, api: Api, **more: Any) -> str:
        """Ask with a recorded client of an official package; returns the step of the call."""
        with self.program(), instrument_client(api.sync(self.provider)) as client:
            said = api.call(client, **more)
            if more.get("stream"):
                for _ in said:
                    pass
        return self.newest_call()

    def newest_call(self) -> str:
        run = self.get("/v1/runs")["items"][0]["run_id"]
        steps = self.get(f"/v1/runs/{run}/steps")["items"]
        return [one["step_id"] for one in steps if one["role"] in ("llm", "embedding")][-1]

    # ---- replays

    @property
    def replays(self) -> Replays:
        found: Replays = self.app.state.replays
        return found

    def post(self, path: str, body: Json, **headers: str) -> Response:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.client.post(path, json=body, headers=named)

    def replay(self, step_id: str, **more: Any) -> Json:
        """Replay a step, wait for its end, and return it."""
        answer = self.post("/v1/replay", {"step_id": step_id, "wait_s": 30, **more})
        assert answer.status_code == 201, answer.text
        told: Json = answer.json()
        return told

    def preview(self, step_id: str, *mutations: Json, **more: Any) -> Json:
        body = {"step_id": step_id, "mutations": list(mutations), **more}
        answer = self.post("/v1/replay/preview", body)
        assert answer.status_code == 200, answer.text
        told: Json = answer.json()
        return told

    def refused(self, step_id: str, **more: Any) -> Json:
        """Ask for a replay that is refused; returns the error's details."""
        answer = self.post("/v1/replay", {"step_id": step_id, "wait_s": 30, **more})
        assert answer.status_code == 409, answer.text
        error: Json = answer.json()["error"]
        assert error["code"] == "not_replayable"
        return {**error["details"], "message": error["message"]}

    def get(self, path: str) -> Json:
        answer = self.client.get(path)
        assert answer.is_success, answer.text
        told: Json = answer.json()
        return told

    def step(self, step_id: str) -> Json:
        return self.get(f"/v1/steps/{step_id}")

    def payload(self, ref: str) -> bytes:
        return self.client.get(f"/v1/payloads/{ref}").content

    def rows_of(self, run_id: str) -> list[Any]:
        """Return every row of a run as it is stored, its spans' whole records among them."""
        connection = open_reader(self.folder)
        try:
            trace = bytes.fromhex(run_id)
            spans = connection.execute(
                "SELECT * FROM span JOIN span_record ON span_record.span = span.id "
                "WHERE trace_id = ? ORDER BY span.id",
                (trace,),
            ).fetchall()
            run = connection.execute("SELECT * FROM run WHERE trace_id = ?", (trace,)).fetchall()
            calls = connection.execute(
                "SELECT call.* FROM call JOIN span ON span.id = call.span WHERE trace_id = ?",
                (trace,),
            ).fetchall()
            compiles = connection.execute(
                "SELECT compilation.* FROM compilation JOIN span ON span.id = compilation.span "
                "WHERE trace_id = ?",
                (trace,),
            ).fetchall()
            return [spans, run, calls, compiles]
        finally:
            connection.close()


@contextmanager
def module_staging(path: Path) -> Iterator[Stage]:
    """Open a stage for the tests of a module."""
    with pytest.MonkeyPatch.context() as monkeypatch, staging(path, monkeypatch) as made:
        yield made


@contextmanager
def staging(path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    """Open a stage for a test."""
    with providing() as provider:
        made = Stage(path, provider, monkeypatch)
        try:
            yield made
        finally:
            made.close()
