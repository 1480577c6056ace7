"""Which prompt of a session a span is of: what makes several traces the rounds of one prompt.

Coding agents name it on spans (Codex `turn.id`, Gemini CLI `gen_ai.prompt.name`) or on log records
alone (Claude Code `prompt.id`, Gemini CLI `prompt_id`); others follow one of these, often after a
prefix of their own (`acme.turn_id`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from hansard_collector.dialects.engine.item_views import LogView, Value
from hansard_collector.dialects.engine.span_reader import Reading
from hansard_collector.dialects.engine.values import text

PROMPT_KEYS: Final = (
    "prompt.id", "prompt_id", "promptId", "user_prompt.id", "user_prompt_id", "gen_ai.prompt.id",
)  # fmt: skip
TURN_KEYS: Final = (
    "turn.id", "turn_id", "turnId", "gen_ai.turn.id", "conversation.turn.id",
    "conversation.turn_id", "interaction.id", "interaction_id",
)  # fmt: skip
# Of a sub-agent's turn: the one that it serves.
ROOT_KEYS: Final = ("root.turn.id", "root_turn_id")
# The same after any prefix; the plan finds keys by these ends.
ENDS: Final[Mapping[str, tuple[str, ...]]] = {
    "* prompt": (".prompt.id", ".prompt_id", ".promptId"),
    "* turn": (".turn.id", ".turn_id", ".turnId"),
}
LOGS: Final = "event *"  # evidence: log records, whatever they are called
_LOG_KEYS: Final = (*ROOT_KEYS, *PROMPT_KEYS, *TURN_KEYS)
_SESSION_KEYS: Final = ("session.id", "gen_ai.conversation.id", "conversation.id", "session_id")
_GEMINI: Final = "gemini_cli"
# Gemini CLI's prompts: `<session>########<number>`; a sub-agent's begin with the one they serve.
_SEPARATOR: Final = "########"
_MAIN_PROMPT: Final = re.compile(r"(.+?########\d+)")
_LONGEST: Final = 500
# What stands beside the id of a template: a stored text that many prompts are made of.
_OF_TEMPLATES: Final = ("version", "vendor", "url", "name", "template", "label", "slug")
_STORED_PROMPT: Final = "pmpt_"  # OpenAI's ids of such


def named(reading: Reading, key: str) -> str | None:
    """Return the prompt that a key names; None where it names the template of one."""
    if key == "prompt.id" and "openinference" in reading.marks:
        return None  # of a template, by its convention
    return _named(reading.attributes, key)


def named_by_gemini(reading: Reading, key: str) -> str | None:
    """Gemini CLI's `gen_ai.prompt.name`, which is a template's name in the conventions."""
    found = _prompt(reading.attributes[key])
    return found if found and (_GEMINI in reading.marks or _SEPARATOR in found) else None


def named_after_prefix(reading: Reading, family: str) -> str | None:
    """Return the prompt that a key of a sender's own names."""
    found = (_named(reading.attributes, key) for key in sorted(reading.families.get(family, ())))
    return next(filter(None, found), None)


def named_in_metadata(reading: Reading, family: str) -> str | None:
    """Return the turn that a library's user put into its metadata; `prompt_id` may be anything."""
    for name in ("turn_id", "turn.id", "turnId"):
        if found := _prompt(reading.attributes.get(family + name)):
            return found
    return None


def logged(reading: Reading, _: str) -> str | None:
    """Return the prompt that the log records of a span name; several: as lines, of none of them."""
    found = dict.fromkeys(filter(None, map(prompt_of_log, reading.view.logs)))
    return "\n".join(found) or None


def session_logged(reading: Reading, _: str) -> str | None:
    """Return the session that the first log record to name one names."""
    for log in reading.view.logs:
        for key in _SESSION_KEYS:
            if found := text(log.attributes.get(key)):
                return found
    return None


def prompt_of_log(log: LogView) -> str | None:
    """Return the prompt that a log record names."""
    for key in _LOG_KEYS:
        if key in log.attributes and (found := _named(log.attributes, key)):
            return found
    return None


def _named(attributes: Mapping[str, Value], key: str) -> str | None:
    stem = key[:-2]
    for name in _OF_TEMPLATES:
        if stem + name in attributes or stem + name.title() in attributes:
            return None
    return _prompt(attributes[key])


def _prompt(value: Value) -> str | None:
    found = text(value)
    if not found or len(found) > _LONGEST or found.startswith(_STORED_PROMPT):
        return None
    main = _MAIN_PROMPT.match(found) if _SEPARATOR in found else None
    return main[1] if main else " ".join(found.split()) or None
