"""Static files: what is vendored, how it is cached, how much script there is."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
from importlib.resources import files
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from hansard_web.ui.assets import Assets

STATIC = Path(str(files("hansard_web"))) / "static"
MANIFEST = json.loads((STATIC / "vendor" / "manifest.json").read_text(encoding="utf-8"))
SCRIPT_BUDGET_BYTES = 44_000  # compressed: htmx, its SSE extension and all modules of all pages


@pytest.mark.covers("UI-01")
@pytest.mark.parametrize("entry", MANIFEST, ids=[entry["file"] for entry in MANIFEST])
def test_a_vendored_file_is_the_one_its_manifest_names(entry: dict[str, str]) -> None:
    body = (STATIC / "vendor" / entry["file"]).read_bytes()

    assert base64.b64encode(hashlib.sha384(body).digest()).decode() == entry["sha384"]
    assert entry["version"] in entry["file"]
    assert entry["licence"]


def test_nothing_is_vendored_that_the_manifest_does_not_name() -> None:
    vendor = STATIC / "vendor"
    found = {path.name for pattern in ("*.js", "*.woff2") for path in vendor.glob(pattern)}

    assert found == {entry["file"] for entry in MANIFEST}


def test_fonts_are_small_licensed_and_kept_for_a_year(client: TestClient) -> None:
    fonts = [entry for entry in MANIFEST if entry["file"].endswith(".woff2")]

    assert [entry["licence"] for entry in fonts] == ["OFL-1.1", "OFL-1.1"]
    assert sum((STATIC / "vendor" / entry["file"]).stat().st_size for entry in fonts) < 125_000
    for entry in fonts:
        licence = STATIC / "vendor" / f"{entry['name']}-{entry['version']}.LICENSE"
        assert "SIL OPEN FONT LICENSE" in licence.read_text(encoding="utf-8").upper()
        answer = client.get(Assets().url(f"vendor/{entry['file']}"))
        assert answer.headers["content-type"] == "font/woff2"
        assert "immutable" in answer.headers["cache-control"]
        assert "font-src 'self'" in answer.headers["content-security-policy"]


def test_all_scripts_together_stay_within_their_budget() -> None:
    sizes = {path.name: len(gzip.compress(path.read_bytes())) for path in STATIC.rglob("*.js")}

    assert sum(sizes.values()) <= SCRIPT_BUDGET_BYTES, sizes


def test_our_modules_are_short() -> None:
    lines = {path.name: path.read_text().count("\n") for path in (STATIC / "js").glob("*.js")}

    assert {name: count for name, count in lines.items() if count >= 150} == {}


def test_a_file_of_this_build_is_kept_for_a_year(client: TestClient) -> None:
    answer = client.get(Assets().url("css/app.css"))

    assert answer.status_code == 200
    assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert answer.headers["content-type"] == "text/css; charset=utf-8"


def test_a_file_of_another_build_must_be_asked_for_again(client: TestClient) -> None:
    answer = client.get("/static/000000000000/css/app.css")

    assert answer.headers["cache-control"] == "no-cache"
    again = client.get(
        "/static/000000000000/css/app.css", headers={"If-None-Match": answer.headers["etag"]}
    )
    assert again.status_code == 304


@pytest.mark.parametrize(
    "path", ["../app.py", "%2e%2e/app.py", "..%2fapp.py", "/etc/passwd", "css", ""]
)
def test_only_files_of_the_package_can_be_named(client: TestClient, path: str) -> None:
    assert client.get(f"/static/{Assets().build}/{path}").status_code == 404
