"""One hook event as JSON on stdin: what it is about, and the command in it."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MOST_BYTES = 2 << 20  # of an event that is read at all
_SLICE_BYTES = 1 << 16
_TEXT_KEYS = (
    "command", "cmd", "script", "sql", "query", "statement", "code", "shell_command", "input",
)  # fmt: skip
_LIST_KEYS = ("args", "argv", "arguments", "command", "cmd")
_SQL_KEYS = frozenset({"sql", "query", "statement"})
_MOST_COMMAND_CHARS = 1 << 16


class HookEvent:
    """A hook event. Missing texts are empty; `fields` is all of it."""

    __slots__ = ("call_id", "cwd", "fields", "name", "prompt_id", "session", "tool", "tool_input")

    def __init__(self, fields: dict[str, Any]) -> None:
        self.fields = fields
        self.name = _text(fields, "hook_event_name", "event")
        self.session = _text(fields, "session_id", "conversation_id")
        self.prompt_id = _text(fields, "prompt_id")
        self.call_id = _text(fields, "tool_use_id", "tool_call_id", "call_id")
        self.tool = _text(fields, "tool_name", "tool")
        self.cwd = _text(fields, "cwd")
        self.tool_input: Any = fields.get("tool_input", fields.get("input"))
        if self.tool_input is None and isinstance(fields.get("command"), str):
            self.tool_input = {"command": fields["command"]}  # as Cursor sends it


def _text(fields: dict[str, Any], *keys: str) -> str:
    for key in keys:
        value = fields.get(key)
        if isinstance(value, str) and value:
            return value
    return ""


def read_event(descriptor: int = 0) -> HookEvent | None:
    """Return the event on a file descriptor; None for anything that is none.

    What is longer than an event may be is read to its end and passed over, so that who writes it
    is not interrupted. Raises nothing but what a signal handler raises.
    """
    parts: list[bytes] = []
    size = 0
    while True:
        try:
            part = os.read(descriptor, _SLICE_BYTES)
        except OSError:  # closed
            return None
        if not part:
            break
        size += len(part)
        if size <= MOST_BYTES:
            parts.append(part)
        else:
            parts.clear()
    if not 0 < size <= MOST_BYTES:
        return None
    import json

    try:
        fields = json.loads(b"".join(parts))
    except (ValueError, RecursionError):  # UnicodeDecodeError is a ValueError
        return None
    return HookEvent(fields) if isinstance(fields, dict) else None


class Found:
    """A command in a tool's input; `is_sql` by its key."""

    __slots__ = ("is_sql", "text")

    def __init__(self, text: str, *, is_sql: bool = False) -> None:
        self.text = text[:_MOST_COMMAND_CHARS]
        self.is_sql = is_sql


def command_in(event: HookEvent, *, knows: Any = None) -> Found | None:
    """Return the command that a tool call would run; None where its input has none.

    `knows` says whether a name is that of a program: then a tool of this name is one, and its
    arguments are the program's (`kubectl` with `["delete", "ns", "x"]`).
    """
    tool_input = event.tool_input
    if isinstance(tool_input, str):
        return Found(tool_input) if tool_input.strip() else None
    if not isinstance(tool_input, dict):
        return None
    for key in _LIST_KEYS:
        value = tool_input.get(key)
        if isinstance(value, list) and value and all(isinstance(one, str) for one in value):
            return Found(
                " ".join([*_program_of_tool(event.tool, value, knows), *map(_word, value)])
            )
    for key in _TEXT_KEYS:
        value = tool_input.get(key)
        if isinstance(value, str) and value.strip():
            first = value.split(None, 1)[:1]
            if key in _SQL_KEYS:
                return Found(value, is_sql=True)
            head = _program_of_tool(event.tool, first, knows) if key != "code" else []
            return Found(" ".join([*head, value]))
    return None


def _program_of_tool(tool: str, words: list[str], knows: Any) -> list[str]:
    """Return the program that a tool is named after, unless the words begin with a program."""
    name = tool.rpartition("__")[2].lower()
    if knows is None or not knows(name) or (words and knows(words[0].rpartition("/")[2])):
        return []
    return [name]


def _word(text: str) -> str:
    """Return a text as one word of a shell."""
    if text and all(c.isalnum() or c in "-_./:=@,+%" for c in text):
        return text
    return "'" + text.replace("'", "'\\''") + "'"
