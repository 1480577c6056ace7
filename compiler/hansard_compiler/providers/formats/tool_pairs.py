"""What each API demands of tool calls and their results, checked before anything is sent.

Each function returns a sentence for every problem, nothing when all is well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hansard_compiler.calls import Message, ToolCallPart, ToolResultPart


def responses_problems(items: Sequence[Any], *, is_continued: bool) -> list[str]:
    """Each call answered once and later; each result after its call; reasoning before something."""
    called: dict[str, bool] = {}
    problems = []
    for item in items:
        kind, call_id = item.get("type"), item.get("call_id")
        if kind in ("function_call", "custom_tool_call"):
            if call_id in called or not call_id:
                problems.append(f"tool call {call_id!r} needs an id of its own")
            called[call_id] = False
        elif kind in ("function_call_output", "custom_tool_call_output"):
            if called.get(call_id):
                problems.append(f"tool call {call_id!r} is answered twice")
            elif call_id not in called and not is_continued:
                problems.append(f"a result for {call_id!r}, which nobody called before it")
            called[call_id] = True
    problems.extend(
        f"tool call {call_id!r} has no result" for call_id, is_done in called.items() if not is_done
    )
    if items and items[-1].get("type") == "reasoning":
        problems.append("a reasoning item without the item it led to")
    return problems


def messages_problems(messages: Sequence[Mapping[str, Any]]) -> list[str]:
    """Every call of a turn is answered in the very next message, and nothing else is answered."""
    problems: list[str] = []
    open_calls: list[str] = []
    for index, message in enumerate(messages):
        blocks = message.get("content")
        blocks = blocks if isinstance(blocks, list) else []
        results = [one.get("tool_use_id") for one in blocks if one.get("type") == "tool_result"]
        problems.extend(
            f"messages[{index}]: a result for {one!r}, which the message before did not call"
            for one in results
            if one not in open_calls
        )
        problems.extend(
            f"messages[{index}]: tool call {one!r} is answered twice"
            for one in sorted({one for one in results if results.count(one) > 1})
        )
        problems.extend(
            f"messages[{index}]: tool call {one!r} has no result in the message after it"
            for one in open_calls
            if one not in results
        )
        open_calls = [one.get("id") for one in blocks if one.get("type") == "tool_use"]
    problems.extend(f"tool call {one!r} has no result" for one in open_calls)
    return problems


def chat_problems(messages: Sequence[Mapping[str, Any]]) -> list[str]:
    """Results stand directly after the message that called, each call answered once."""
    problems: list[str] = []
    waiting: list[str] = []
    for index, message in enumerate(messages):
        if message.get("role") == "tool":
            call_id = message.get("tool_call_id")
            if call_id in waiting:
                waiting.remove(call_id)
            else:
                problems.append(
                    f"messages[{index}]: a result for {call_id!r}, which waits for none"
                )
            continue
        problems.extend(
            f"messages[{index}]: tool call {one!r} has no result before it" for one in waiting
        )
        waiting = [call.get("id") for call in message.get("tool_calls") or ()]
    problems.extend(f"tool call {one!r} has no result" for one in waiting)
    return problems


def neutral_problems(messages: Sequence[Message]) -> list[str]:
    """Every call answered once, every result after its call."""
    called: set[str | None] = set()
    answered: set[str | None] = set()
    problems = []
    for part in (part for message in messages for part in message.parts):
        if isinstance(part, ToolCallPart):
            called.add(part.id)
        elif isinstance(part, ToolResultPart):
            if part.id not in called or part.id in answered:
                problems.append(f"a result for {part.id!r}, which waits for none")
            answered.add(part.id)
    problems.extend(
        f"tool call {one!r} has no result" for one in sorted(map(str, called - answered))
    )
    return problems
