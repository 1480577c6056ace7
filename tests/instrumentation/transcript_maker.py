"""Messages of transcripts, as tests write them."""

from __future__ import annotations

from typing import Any

from hansard_compiler.transcripts.entry import NewMessage
from hansard_compiler.transcripts.ids import LogId
from hansard_compiler.transcripts.messages import StoredMessage
from hansard_compiler.transcripts.ports import Transcripts

SECRET = "sk-ant-api03-" + "a1B2c3D4" * 12


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def assistant(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def call(call_id: str, name: str = "find", **arguments: Any) -> dict[str, Any]:
    part = {"type": "tool_call", "id": call_id, "name": name, "arguments": arguments}
    return {"role": "assistant", "parts": [part]}


def result(call_id: str, content: Any) -> dict[str, Any]:
    return {"role": "tool", "id": call_id, "content": content}


def say(transcripts: Transcripts, log: LogId, *messages: dict[str, Any]) -> list[StoredMessage]:
    """Append messages, all or none."""
    return transcripts.append(log, [NewMessage(one) for one in messages])


def texts(messages: list[StoredMessage]) -> list[str]:
    """Return what was said, a text a message."""
    return [one.body["parts"][0]["text"] for one in messages]
