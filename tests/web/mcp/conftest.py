"""One server with tokens a module, over a store that programs, a provider and people use."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from hansard_collector.pipeline.ingest_queue import Pipeline
from hansard_collector.pipeline.redaction import RetentionPolicy
from hansard_compiler.redaction.redactor import Redactor
from hansard_web.app.application import create_app
from hansard_web.app.config import WebSettings, parse_token
from tests.web.conftest import Served
from tests.web.mcp.speaking import Speaker
from tests.web.replay.stage import Stage, staging

AGENT, READER, SENDER = "agent-token-1234", "reader-token-1234", "sender-token-1234"
LOOKER = "looker-token-1234"


@dataclass(frozen=True)
class Office:
    """A store, a person at its API without tokens (`stage`), and clients with tokens."""

    stage: Stage
    url: str

    @property
    def agent(self) -> Speaker:
        return Speaker(self.url, AGENT)

    @property
    def reader(self) -> Speaker:
        return Speaker(self.url, READER)

    def decide(self, approval_id: str, decision: str, **body: str | int) -> None:
        answer = self.stage.post(f"/v1/approvals/{approval_id}/{decision}", {"by": "kim", **body})
        assert answer.status_code == 200, answer.text


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Office]:
    with (
        pytest.MonkeyPatch.context() as monkeypatch,
        staging(tmp_path_factory.mktemp("mcp") / "data", monkeypatch) as stage,
    ):
        retention = RetentionPolicy("redacted_payloads", Redactor(stage.folder.key()))
        pipeline = Pipeline(stage.folder, retention)
        pipeline.start()
        tokens = (
            parse_token(f"read+ingest+decide:{AGENT}"),
            parse_token(f"read+ingest:{READER}"),
            parse_token(f"ingest:{SENDER}"),
            parse_token(f"read:{LOOKER}"),
        )
        settings = WebSettings(tokens=tokens, model_server=f"{stage.provider.address}/v1")
        with Served(create_app(stage.folder, pipeline, settings)) as server:
            yield Office(stage, server.url)
        pipeline.close()
