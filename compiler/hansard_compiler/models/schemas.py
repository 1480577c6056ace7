"""The JSON schemas of all models, as `docs/schemas/` publishes them (`make schemas`)."""

from __future__ import annotations

import json

from pydantic import BaseModel

from hansard_compiler.compile.models import (
    CompilationDecision,
    CompilationRequest,
    CompiledContext,
    ContextItem,
    Json,
    MemoryRecord,
    PolicyRule,
    SourceRef,
)
from hansard_compiler.models.runs import ReplayRecipe, RunRecord, StepRecord

MODELS: tuple[type[BaseModel], ...] = (
    ContextItem, SourceRef, MemoryRecord, PolicyRule, CompilationRequest, CompilationDecision,
    CompiledContext, RunRecord, StepRecord, ReplayRecipe,
)  # fmt: skip
_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def schemas() -> dict[str, Json]:
    """Return every model's schema by its file name."""
    return {
        f"{model.__name__}.json": {"$schema": _DIALECT, **model.model_json_schema()}
        for model in MODELS
    }


def schema_text(schema: Json) -> str:
    """Return a schema as its file holds it."""
    return json.dumps(schema, indent=2, ensure_ascii=False, sort_keys=True) + "\n"
