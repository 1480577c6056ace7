"""The published JSON schemas; `make schemas` writes `docs/schemas/` again."""

from __future__ import annotations

import json
from pathlib import Path

from pydantic import BaseModel

from hansard_compiler.compile.models import (
    CompilationDecision,
    CompilationRequest,
    CompiledContext,
    ContextItem,
    MemoryRecord,
    PolicyRule,
    SourceRef,
)
from hansard_compiler.models.runs import ReplayRecipe, RunRecord, StepRecord

FOLDER = Path(__file__).parent.parent.parent / "docs" / "schemas"
MODELS: tuple[type[BaseModel], ...] = (
    ContextItem, SourceRef, MemoryRecord, PolicyRule, CompilationRequest, CompilationDecision,
    CompiledContext, RunRecord, StepRecord, ReplayRecipe,
)  # fmt: skip
_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def schema_texts() -> dict[str, str]:
    """Return every model's schema by its file name, as the file holds it."""
    schemas = {
        f"{model.__name__}.json": {"$schema": _DIALECT, **model.model_json_schema()}
        for model in MODELS
    }
    return {
        name: json.dumps(schema, indent=2, ensure_ascii=False, sort_keys=True) + "\n"
        for name, schema in schemas.items()
    }


if __name__ == "__main__":
    for name, text in schema_texts().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
