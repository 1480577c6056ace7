"""The fields of each API's requests, and which of them a rendered request does not have.

The lists are in `request_fields.toml`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from typing import Any, Final

from hansard_compiler.calls import Json
from hansard_compiler.diff.json_paths import json_diff
from hansard_compiler.replay.request_edits import CHAT, MESSAGES, RESPONSES

with open(__file__.removesuffix(".py") + ".toml", "rb") as _file:
    _LISTED: Final = {
        name: frozenset(fields.split()) for name, fields in tomllib.load(_file).items()
    }
FIELDS: Final[Mapping[str, frozenset[str]]] = {
    api: _LISTED[api] for api in (CHAT, RESPONSES, MESSAGES)
}
# What telemetry never has of fields that it does have: names, marks and flags within them.
_INSIDE: Final[Mapping[str, str]] = {
    CHAT: "whether a system text was sent as system or developer, `strict` of tools, "
    "the name of the limit on the answer (max_tokens is used)",
    RESPONSES: "the types and ids of items, `phase` of messages, encrypted reasoning",
    MESSAGES: "every cache_control, signatures of thinking, `is_error` of results",
}
_SHOWN: Final = 40


def unknown_fields(api: str, rendered: Mapping[str, Any]) -> list[str]:
    """Return the fields of an API that a request rebuilt from telemetry does not have."""
    return sorted(FIELDS.get(api, frozenset()) - rendered.keys())


def unknown_note(api: str, rendered: Mapping[str, Any]) -> str:
    """Return which fields a request rebuilt from telemetry lacks, in words."""
    names = ", ".join(unknown_fields(api, rendered))
    return (
        "rebuilt from telemetry, which does not have these fields of the sender's request, so "
        f"they are not sent: {names}; nor {_INSIDE[api]}"
    )


def lost_paths(recorded: Json, rendered: Json) -> list[str]:
    """Return the paths at which a rendered request is not the recorded one, at most 40."""
    found = [one.path for one in json_diff(rendered, recorded).changes]
    return found if len(found) <= _SHOWN else [*found[:_SHOWN], f"{len(found) - _SHOWN} more"]


def added_fields(made: Mapping[str, Any], api: str) -> Json:
    """Return the parameters of telemetry that are fields of an API as they are.

    Those that a render has of its own (messages, tools, sampling) are left out.
    """
    known = FIELDS.get(api, frozenset()) - _LISTED["rendered"]
    found = {name: value for name, value in made.items() if name in known and value is not None}
    count = made.get("choice_count")
    return {**found, "n": count} if api == CHAT and count is not None else found
