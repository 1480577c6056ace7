"""MLflow tracing: every attribute value is JSON text, so a text comes quoted once more."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from hansard_collector.dialects.content import chat, tool_lists
from hansard_collector.dialects.engine.sources import FieldSource, each, provider_of, same
from hansard_collector.dialects.engine.span_reader import Reading
from hansard_collector.dialects.engine.values import (
    count,
    first,
    is_content,
    opened,
    reals,
    text,
)
from hansard_compiler.calls import Json, Message

CHUNK_EVENT = "mlflow.chunk.item."
CHUNK_VALUE = "mlflow.chunk.value"

ROLES: Mapping[str, str] = same(
    "llm",
    "embedding",
    "agent",
    "chain",
    "tool",
    "retriever",
    "memory",
    "workflow",
    "task",
    "guardrail",
    "evaluator",
) | {
    "chat_model": "llm",
    "parser": "chain",
    "reranker": "rerank",
}


def decode(reading: Reading, key: str) -> Any:
    """The value with both layers of JSON taken off; None where it is empty."""
    value = opened(reading.opened(key))
    return value if is_content(value) else None


def texts_of(*keys: str) -> tuple[FieldSource, ...]:
    return each(keys, _read_text)


def _read_text(reading: Reading, key: str) -> str | None:
    return text(decode(reading, key))


def number(key: str, name: str, read: Callable[[Any], Any] = count) -> FieldSource:
    """A number in one of MLflow's JSON objects."""

    def find(reading: Reading, evidence: str) -> Any:
        value = decode(reading, evidence)
        return read(value.get(name)) if isinstance(value, dict) else None

    return FieldSource(key, find, label=f"{key}{{{name}}}")


def role(reading: Reading, key: str) -> str | None:
    kind = text(decode(reading, key))
    return ROLES.get(kind.lower()) if kind else None


def provider(reading: Reading, key: str) -> str | None:
    return provider_of(decode(reading, key))


def input_messages(reading: Reading, key: str) -> tuple[Message, ...] | None:
    return chat.request_messages(decode(reading, key)) or None


def output_messages(reading: Reading, key: str) -> tuple[Message, ...] | None:
    return chat.response_messages(decode(reading, key)) or _streamed(reading) or None


def _streamed(reading: Reading) -> tuple[Message, ...]:
    """What OpenAI's streams said in chunks, where MLflow did not put them together."""
    events = (event for event in reading.view.events if event.name.startswith(CHUNK_EVENT))
    return chat.streamed_messages(event.attributes.get(CHUNK_VALUE) for event in events)


def tools(reading: Reading, key: str) -> tuple[Json, ...] | None:
    return tool_lists.tools_of(decode(reading, key)) or None


def _model_of_parameters(reading: Reading, key: str) -> str | None:
    sent = decode(reading, key)
    return text(first(sent, _MODEL_PARAMETERS)) if isinstance(sent, dict) else None


# A failed call has no answer that names its model: the parameters of the request do.
_MODEL_PARAMETERS = ("model", "model_name", "modelId", "model_id")
REQUESTED_MODEL = (
    FieldSource("invocation_params", _model_of_parameters, needs="mlflow"),
    FieldSource("model", _read_text, needs="mlflow"),
    FieldSource("model_name", _read_text, needs="mlflow"),
    FieldSource("mlflow.spanInputs", _model_of_parameters, label="mlflow.spanInputs{modelId}"),
)


def cost_lines(reading: Reading, key: str) -> Mapping[str, float] | None:
    sent = decode(reading, key)
    if not isinstance(sent, dict):
        return None
    return reals({part: sent.get(f"{part}_cost") for part in ("input", "output")}) or None
