"""Messages of a transcript: a tagged union by role, and how a row becomes one.

A row is a role, and the rest as canonical JSON. It is validated when it is read, not merely parsed:
what is no message raises UndecodableMessage with its conversation and position. Rows of older
versions are brought up to date on the way, and never rewritten.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Final, Literal

from pydantic import Field, GetJsonSchemaHandler, TypeAdapter, ValidationError
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from hansard_compiler.calls import Json, Message, message_from_json
from hansard_compiler.compile.models import Model, first_problem
from hansard_compiler.transcripts.errors import UndecodableMessage
from hansard_compiler.transcripts.ids import LogId

SCHEMA_VERSION: Final = 1
ROLES: Final = ("user", "assistant", "tool")
_MOST_CHARS = 160


class TextItem(Model):
    type: Literal["text"]
    text: str


class Reasoning(Model):
    type: Literal["reasoning"]
    text: str


class ToolCallItem(Model):
    type: Literal["tool_call"]
    id: str | None = None
    name: str
    arguments: Any = None


class Clip(Model):
    """What is left of an oversize result, and where the whole of it is."""

    payload: str
    media_type: str
    size_bytes: int
    kept_bytes: int


class ToolResultItem(Model):
    type: Literal["tool_result"]
    id: str | None = None
    content: Any = None
    name: str | None = None
    clip: Clip | None = None


class Media(Model):
    type: Literal["media"]
    media_type: str | None = None
    payload: str | None = None
    uri: str | None = None
    data: str | None = None


class OtherItem(Model):
    """What only one provider knows, such as a signed block: stored whole."""

    type: Literal["other"]
    value: Any = None


class UserMessage(Model):
    role: Literal["user"]
    parts: list[Annotated[TextItem | Media | OtherItem, Field(discriminator="type")]] = Field(
        min_length=1
    )
    name: str | None = None


class AssistantMessage(Model):
    role: Literal["assistant"]
    parts: list[
        Annotated[
            TextItem | Reasoning | ToolCallItem | Media | OtherItem, Field(discriminator="type")
        ]
    ]
    name: str | None = None


class ToolMessage(Model):
    role: Literal["tool"]
    parts: list[ToolResultItem] = Field(min_length=1)
    name: str | None = None


AgentMessage = UserMessage | AssistantMessage | ToolMessage


@cache
def message_type() -> TypeAdapter[AgentMessage]:
    """Return what validates messages; made once, on first use."""
    return TypeAdapter(Annotated[AgentMessage, Field(discriminator="role")])


class ShortMessage(Model):
    """A message of one text, in its short form."""

    role: Literal["user", "assistant"]
    content: str
    name: str | None = None


class ShortResult(Model):
    """One tool result, in its short form."""

    role: Literal["tool"]
    id: str | None = None
    content: Any
    name: str | None = None


class MessageSchema:
    """Annotates an object that is checked as a message later: its schema, in every form of it."""

    def __get_pydantic_json_schema__(
        self, _: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        forms: TypeAdapter[Any] = TypeAdapter(AgentMessage | ShortMessage | ShortResult)
        return handler(forms.core_schema)


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """A message as it is in a log. `content` never changes, to the byte."""

    id: str  # 32 hex digits
    log: LogId
    position: int
    role: str
    content: str  # canonical JSON of the message without its role
    created_ns: int
    message: AgentMessage  # the same, validated
    schema_version: int = SCHEMA_VERSION
    trace_id: str | None = None
    span_id: str | None = None

    @property
    def body(self) -> Json:
        """The message as it goes into prompts and responses; a new object each time."""
        return {"role": self.role, **upgraded(json.loads(self.content), self.schema_version)}

    @property
    def clips(self) -> list[Clip]:
        parts = self.message.parts if isinstance(self.message, ToolMessage) else []
        return [part.clip for part in parts if part.clip is not None]


@dataclass(frozen=True, slots=True)
class Row:
    """A message as it is stored, whatever it holds."""

    id: bytes
    position: int
    role: str
    content: str
    created_ns: int
    schema_version: int
    trace_id: bytes | None
    span_id: bytes | None


# From a version to the next. A version that was ever written stays readable for ever.
UPGRADES: dict[int, Callable[[Json], Json]] = {}


def upgraded(rest: Json, version: int) -> Json:
    """Return a message's fields in today's shape; raises ValueError for an unknown version."""
    while version != SCHEMA_VERSION:
        if version not in UPGRADES:
            raise ValueError(f"schema version {version} is not known to this version of Hansard")
        rest, version = UPGRADES[version](rest), version + 1
    return rest


def decode(log: LogId, row: Row) -> StoredMessage:
    """Return a row as the message it is; raises UndecodableMessage and nothing else."""
    try:
        rest = json.loads(row.content)
        if not isinstance(rest, dict) or "role" in rest:
            raise ValueError("the content is no JSON object without a role")
        message = message_type().validate_python(
            {"role": row.role, **upgraded(rest, row.schema_version)}
        )
    except ValidationError as error:
        raise UndecodableMessage(
            str(log), row.position, first_problem(error)[:_MOST_CHARS]
        ) from None
    except json.JSONDecodeError as error:
        why = f"no JSON: {error.msg} (character {error.pos})"
        raise UndecodableMessage(str(log), row.position, why) from None
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        why = str(error)[:_MOST_CHARS] or type(error).__name__
        raise UndecodableMessage(str(log), row.position, why) from None
    return StoredMessage(
        id=row.id.hex(),
        log=log,
        position=row.position,
        role=row.role,
        content=row.content,
        created_ns=row.created_ns,
        message=message,
        schema_version=row.schema_version,
        trace_id=row.trace_id.hex() if row.trace_id else None,
        span_id=row.span_id.hex() if row.span_id else None,
    )


def call_message(body: Mapping[str, Any]) -> Message:
    """Return a message of a transcript in the normal form of model calls."""
    return message_from_json({**body, "parts": [_plain(part) for part in body["parts"]]})


def _plain(part: Mapping[str, Any]) -> Json:
    absent = {"tool_call": ("id", "arguments"), "tool_result": ("id", "content"),
              "media": ("media_type",), "other": ("value",)}.get(part["type"], ())  # fmt: skip
    return {**dict.fromkeys(absent), **part}
