"""The head of the audit log, told in the trace by a server once a day."""

from __future__ import annotations

from pathlib import Path

from starlette.testclient import TestClient

from hansard_collector.pipeline.ingest_queue import Pipeline
from hansard_collector.pipeline.redaction import RetentionPolicy
from hansard_compiler.redaction.redactor import Redactor
from hansard_compiler.retention_modes import RetentionMode
from hansard_store.approvals.service import ApprovalService
from hansard_store.audit.daily_heads import read_heads
from hansard_web.app.application import create_app
from hansard_web.app.config import WebSettings
from hansard_web.audit.chain_state import HeadKeeper
from tests.store.empty import empty_store


def test_a_day_s_head_is_a_run_of_one_step_and_a_file(tmp_path: Path) -> None:
    folder = empty_store(tmp_path / "data")
    mode = RetentionMode.METADATA_ONLY
    pipeline = Pipeline(folder, RetentionPolicy(mode, Redactor(folder.key())))
    pipeline.start()
    with TestClient(create_app(folder, pipeline, WebSettings(retention=mode))) as client:
        client.base_url = "http://localhost"
        accounts = client.app.state.accounts  # type: ignore[attr-defined]
        accounts.store.tool_called("find", time_ns=1)  # long before today
        accounts.heads.look()

        [run] = client.get("/v1/runs").json()["items"]
        [step] = client.get(f"/v1/runs/{run['run_id']}/steps").json()["items"]
        told = client.get(f"/v1/steps/{step['step_id']}").json()["attributes"]
    pipeline.close()

    [kept] = read_heads(folder)
    assert (run["name"], run["service_names"]) == ("hansard.events.head", ["hansard"])
    assert told["hansard.events.seq"] == kept.head.seq == 1
    assert told["hansard.events.hash"] == kept.head.hash.hex()


def test_a_head_that_cannot_be_told_now_is_kept_all_the_same(tmp_path: Path) -> None:
    with ApprovalService(empty_store(tmp_path / "data")) as store:
        store.tool_called("find", time_ns=1)

        def fail(_: object) -> None:
            raise OSError("no space")

        HeadKeeper(store, fail).look()

        assert len(read_heads(store.folder)) == 1
