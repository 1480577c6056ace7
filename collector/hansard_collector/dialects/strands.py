"""AWS Strands: GenAI attributes, contents of tools in span events."""

from __future__ import annotations

from typing import Any

from hansard_collector.dialects.content.parts import arguments_of, result_of
from hansard_collector.dialects.engine.span_reader import Reading
from hansard_collector.dialects.engine.values import is_content, opened


def tool_arguments(reading: Reading, _: str) -> Any:
    """On a tool's span, the tool message holds the arguments."""
    for record in reading.records("gen_ai.tool.message"):
        if is_content(value := record.attributes.get("content")):
            return arguments_of(value)
    return None


def tool_result(reading: Reading, _: str) -> Any:
    """On a tool's span, the choice holds the result, in Bedrock's blocks."""
    for record in reading.records("gen_ai.choice"):
        if is_content(value := record.attributes.get("message")):
            return result_of(opened(value))
    return None


def tool_failed(reading: Reading, key: str) -> bool | None:
    return True if reading.view.attributes[key] == "error" else None
