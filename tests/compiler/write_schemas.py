"""Writes `docs/schemas/` anew: `make schemas`."""

from __future__ import annotations

from pathlib import Path

from hansard_compiler.models.schemas import schema_text, schemas

FOLDER = Path(__file__).parent.parent.parent / "docs" / "schemas"

if __name__ == "__main__":
    for name, schema in schemas().items():
        (FOLDER / name).write_text(schema_text(schema), encoding="utf-8")
