"""What the document says of messages and context items: all that a request may give is accepted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from pydantic import GetJsonSchemaHandler
from pydantic_core import CoreSchema

from hansard_compiler.compile.inputs import MESSAGE_ROLES as ITEM_ROLES
from hansard_compiler.compile.models import ContextItem
from hansard_compiler.models.json_schema import Schema

MESSAGE_ROLES = ("system", "developer", "user", "assistant", "tool")
_TEXT: Final[Schema] = {"type": "string"}
_KINDS: Final = ("text", "tool_call", "tool_result", "reasoning", "media")


def _object(properties: Schema, **more: Any) -> Schema:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": True,
        **more,
    }


def _part(kind: str, **fields: Schema) -> Schema:
    return _object({"type": {"const": kind}, **fields})


# A message as `hansard_compiler.calls.message_problem` has it.
MESSAGE: Final[Schema] = _object(
    {
        "role": {"enum": list(MESSAGE_ROLES)},
        "parts": {
            "type": "array",
            "items": {
                "anyOf": [
                    _part("text", text=_TEXT),
                    _part("tool_call", id={}, name=_TEXT, arguments={}),
                    _part("tool_result", id={}, content={}),
                    _part("reasoning", text=_TEXT),
                    _part("media", media_type=_TEXT),
                    _object({"type": {"not": {"enum": list(_KINDS)}}, "value": {}}),
                ]
            },
        },
    }
)


@dataclass(frozen=True, slots=True)
class AnItem:
    """A value that `hansard_compiler.compile.inputs.context_item_data` takes for a context item."""

    is_compiled: bool  # now: it needs its time, which a step that is given it fills in

    def __get_pydantic_json_schema__(self, _: CoreSchema, __: GetJsonSchemaHandler) -> Schema:
        return {
            "anyOf": [
                _TEXT,
                _context_item(is_compiled=self.is_compiled),
                _item_of_role(),
                _other_object(),
            ]
        }


def _context_item(*, is_compiled: bool) -> Schema:
    whole = ContextItem.model_json_schema()
    source = whole.pop("$defs")["SourceRef"]
    required = [
        *(name for name in whole["required"] if is_compiled or name != "created_at"),
        "source_ref",
    ]
    properties = {**whole["properties"], "source_ref": source}
    return {**whole, "properties": properties, "required": required}


def _item_of_role() -> Schema:
    """Return the schema of a message in any usual form."""
    call = {"type": "object", "properties": {"function": {"type": "object"}}}
    calls = {"anyOf": [{"type": "array", "items": call}, {"type": "null"}]}
    made = _object({"role": {"enum": sorted(ITEM_ROLES)}}, **{"not": {"required": ["kind"]}})
    made["properties"] |= {"content": {}, "tool_calls": calls}
    return made


def _other_object() -> Schema:
    """Return the schema of a file's path, a tool's definition, or anything else that is no item."""
    bad_content = {"content": {"not": {"type": ["string", "object"]}}}
    no_texts = {"not": {"type": ["string", "array", "null"]}}
    reasoning = {"type": {"const": "reasoning"}}
    return {
        "type": "object",
        "additionalProperties": True,
        "not": {
            "anyOf": [
                {"required": ["kind"]},
                {"required": ["role"]},
                {"required": ["id"], "not": {"required": ["type"]}},
                {"required": ["path", "content"], "properties": bad_content},
                *(
                    {"required": ["type", name], "properties": {**reasoning, name: no_texts}}
                    for name in ("summary", "content")
                ),
            ]
        },
    }
