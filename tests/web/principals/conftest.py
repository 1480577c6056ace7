"""A server on loopback without any configured token, and what it serves."""

from __future__ import annotations

import pytest
from starlette.testclient import TestClient

from hansard_collector.pipeline.ingest_queue import Pipeline
from hansard_store.database.data_folder import DataFolder
from hansard_web.app.config import WebSettings
from tests.web.conftest import MakeClient


@pytest.fixture
def api(make_client: MakeClient, pipeline: Pipeline) -> TestClient:
    """A program without a credential."""
    made = make_client(WebSettings(), pipeline)
    made.auth = None
    return made


def folder_of(client: TestClient) -> DataFolder:
    folder: DataFolder = client.app.state.site.folder  # type: ignore[attr-defined]
    return folder
