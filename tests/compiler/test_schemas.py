"""The published schemas are those of the models, and hold what the models hold."""

from __future__ import annotations

import json

import pytest

from tests.compiler.write_schemas import FOLDER, schema_texts


def test_the_published_schemas_are_current() -> None:
    """`make schemas` writes them."""
    found = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.json")}

    assert found == schema_texts()


@pytest.mark.covers("DM-02")
def test_the_published_item_has_sixteen_fields() -> None:
    schema = json.loads((FOLDER / "ContextItem.json").read_text(encoding="utf-8"))

    assert len(schema["properties"]) == 16
    assert schema["additionalProperties"] is False
    assert len(schema["properties"]["kind"]["enum"]) == 17
