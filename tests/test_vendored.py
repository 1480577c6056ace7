"""What tests bring with them of others: named, licensed, and unchanged."""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path

import pytest

VENDOR = Path(__file__).parent / "vendor"
MANIFEST = json.loads((VENDOR / "manifest.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("entry", MANIFEST, ids=[entry["file"] for entry in MANIFEST])
def test_a_vendored_file_is_the_one_its_manifest_names(entry: dict[str, str]) -> None:
    body = (VENDOR / entry["file"]).read_bytes()

    assert base64.b64encode(hashlib.sha384(body).digest()).decode() == entry["sha384"]
    assert entry["version"] in entry["file"]
    licence = VENDOR / f"{entry['name']}-{entry['version']}.LICENSE"
    assert licence.read_text(encoding="utf-8").startswith(entry["licence_begins"])


def test_nothing_is_vendored_that_the_manifest_does_not_name() -> None:
    assert {path.name for path in VENDOR.glob("*.js")} == {entry["file"] for entry in MANIFEST}
