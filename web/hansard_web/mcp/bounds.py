"""Answers made small enough for a model to read, with what was left out said."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Final

MOST_CHARACTERS: Final = 60_000  # of an answer as JSON: some 15,000 tokens
_TEXT, _ITEMS, _DEPTH = 8_000, 200, 30  # what is let through where there is room
_LEAST_TEXT = 60
_MOST_NOTED = 30


@dataclass(slots=True)
class _Cutter:
    most_text: int
    most_items: int
    truncated: list[dict[str, Any]] = field(default_factory=list)

    def cut(self, value: Any, at: str, depth: int = 0) -> Any:
        match value:
            case str() if len(value) > self.most_text:
                self._note(at, "characters", self.most_text, len(value))
                return value[: self.most_text] + "…"
            case dict() | list() if depth >= _DEPTH:
                self._note(at, "levels", 0, 1)
                return None
            case dict():
                kept = list(value.items())[: self.most_items]
                if len(kept) < len(value):
                    self._note(at, "keys", len(kept), len(value))
                return {key: self.cut(one, f"{at}.{key}", depth + 1) for key, one in kept}
            case list():
                items = value[: self.most_items]
                if len(items) < len(value):
                    self._note(at, "items", len(items), len(value))
                return [
                    self.cut(one, f"{at}[{index}]", depth + 1) for index, one in enumerate(items)
                ]
        return value

    def _note(self, at: str, unit: str, shown: int, total: int) -> None:
        at = at.removeprefix(".")
        self.truncated.append({"at": at[:200], "unit": unit, "shown": shown, "total": total})


def bounded(
    answer: dict[str, Any], *, most: int = MOST_CHARACTERS
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return an answer of at most `most` characters, and what it lacks: where, how much of what.

    Long texts are cut first, then lists; all by the same measure, so a small answer stays whole.
    """
    text, items = _TEXT, _ITEMS
    while True:
        cutter = _Cutter(text, items)
        made = cutter.cut(answer, "")
        if len(json.dumps(made, ensure_ascii=False)) <= most:
            return made, _noted(cutter.truncated)
        if text > _LEAST_TEXT:
            text = max(_LEAST_TEXT, text // 2)
        elif items > 1:
            items //= 2
        else:
            lost = {"at": "", "unit": "all", "shown": 0, "total": 1}
            return {}, [lost]


def _noted(truncated: list[dict[str, Any]]) -> list[dict[str, Any]]:
    further = len(truncated) - _MOST_NOTED
    if further <= 0:
        return truncated
    return [
        *truncated[:_MOST_NOTED],
        {"at": "", "unit": "further cuts", "shown": 0, "total": further},
    ]
