"""Arguments as a person edits them: JSON that hides nothing, and what an edit changes."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from hansard_store.approvals.argument_display import show, visible
from hansard_store.approvals.errors import BadProposal
from hansard_store.approvals.records import Approval
from hansard_web.app.strict_json import parse_json
from hansard_web.approvals.history import Change, changes_between
from hansard_web.sidecar.errors import BadBody

_NOT_PLAIN: Final = re.compile(r"[^\x20-\x7e\n]")


@dataclass(frozen=True, slots=True)
class Edit:
    """The form of an edit; `changes` are shown before anything is decided."""

    text: str
    problem: str = ""
    changes: tuple[Change, ...] = ()
    is_looked_at: bool = False


def edit_of(approval: Approval) -> Edit:
    """Return the form with the arguments as they are."""
    return Edit(edit_text(approval.arguments))


def looked_at(approval: Approval, text: str) -> Edit:
    """Return the form with what the edit would change, or with what is wrong with it."""
    try:
        edited = read_arguments(text)
    except BadProposal as error:
        return Edit(text, problem=str(error))
    changes = changes_between(show(approval.arguments), show(edited))
    return Edit(edit_text(edited), changes=changes, is_looked_at=True)


def edit_text(arguments: Mapping[str, Any]) -> str:
    """Return arguments as JSON; what cannot be seen in it is written as an escape."""
    return _NOT_PLAIN.sub(_escaped, json.dumps(arguments, ensure_ascii=False, indent=2))


def read_arguments(text: str) -> dict[str, Any]:
    """Read what a person wrote; raises BadProposal where it is no object of JSON."""
    try:
        found = parse_json(text.encode("utf-8", "surrogatepass"))
    except BadBody as error:
        told = str(error).replace("the body", "what you wrote")
        raise BadProposal("arguments", told) from None
    if not isinstance(found, dict):
        raise BadProposal("arguments", 'the arguments are an object: {"name": value}')
    return found


def _escaped(found: re.Match[str]) -> str:
    one = found[0]
    return one if visible(one) == one else json.dumps(one)[1:-1]
