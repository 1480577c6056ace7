"""docs/annotations.md: every field and route is listed, and its request is understood."""

from __future__ import annotations

import json
import re
from pathlib import Path

from starlette.testclient import TestClient

from hansard_compiler.models.annotations import KINDS
from hansard_web.annotations.api import router
from hansard_web.annotations.bodies import DatasetLine
from hansard_web.app.application import create_app
from hansard_web.app.config import WebSettings
from tests.store.maker import StoreMaker

PAGE = (Path(__file__).parents[2] / "docs" / "annotations.md").read_text(encoding="utf-8")


def test_every_kind_field_and_route_is_listed() -> None:
    for kind in KINDS:
        assert f"**{kind}**" in PAGE
    for field in DatasetLine.__annotations__:
        assert f"`{field}`" in PAGE
    for route in router.routes:
        assert f"{next(iter(route.methods))} {route.path}" in PAGE  # type: ignore[attr-defined]  # each an APIRoute


def test_the_request_that_it_shows_is_understood(tmp_path: Path) -> None:
    store = StoreMaker(tmp_path / "data")
    found = re.search(r"-d '(\{.+?\})'", PAGE, re.DOTALL)
    assert found
    with TestClient(
        create_app(store.folder, None, WebSettings()), base_url="http://localhost"
    ) as one:
        answer = one.post("/v1/annotations", json=json.loads(found[1]))
    store.close()

    assert answer.status_code == 404  # nothing is stored: what it says was understood
