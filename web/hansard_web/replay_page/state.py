"""What the address of a replay's form says: which act, which changes in which order, how often."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Final
from urllib.parse import urlencode

import orjson

from hansard_compiler.calls import Json
from hansard_compiler.replay.mutations import MOST
from hansard_web.replay.request import MOST_REPEATS, Mode, ReplayInput
from hansard_web.ui.format import natural

ACTS: Final = ("exact", "recorded", "mutated", "forward")
LONGEST_ADDRESS: Final = 6_000  # characters; what does not fit is carried by forms
_MODES: Final[dict[str, Mode]] = {
    "exact": "exact",
    "recorded": "exact",
    "mutated": "mutated",
    "forward": "forward",
}


@dataclass(frozen=True, slots=True)
class ReplayState:
    """The state of one page; all of it is in the address, or in the forms where that is long."""

    step_id: str
    act: str = ""  # one of ACTS; "" where none was chosen
    changes: tuple[Json, ...] = ()
    n: int = 1
    offline: bool = False  # with changes: compile and compare, and ask no model
    elsewhere: bool = False
    allow: bool = False  # what the provider does besides answering
    editing: str = ""  # the item, or `message:N`, whose content is open

    @property
    def path(self) -> str:
        return f"/replay/{self.step_id}"

    @property
    def is_long(self) -> bool:
        """Whether the address would be longer than a browser or a proxy lets pass."""
        return len(self.href()) > LONGEST_ADDRESS

    @property
    def fields(self) -> list[tuple[str, str]]:
        """Return the state as the fields of a form, without what is open."""
        pairs = [("act", self.act)] if self.act else []
        pairs += [("change", change_text(one)) for one in self.changes]
        pairs += [("n", str(self.n))] if self.n > 1 else []
        pairs += [("offline", "1")] if self.offline else []
        pairs += [("allow", "1")] if self.allow else []
        return pairs + ([("elsewhere", "1")] if self.elsewhere else [])

    def href(self, **changes: object) -> str:
        """Return the address of this state, or of one that differs from it."""
        state = replace(self, **changes)  # type: ignore[arg-type]  # names of fields
        pairs = state.fields + ([("edit", state.editing)] if state.editing else [])
        return f"{state.path}?{urlencode(pairs)}" if pairs else state.path

    def asked(self, *, script: Json | None = None, notes: str | None = None) -> ReplayInput:
        """Return the request to the API."""
        has_changes = self.act in ("mutated", "forward")
        return ReplayInput(
            step_id=self.step_id,
            mode=_MODES[self.act or ACTS[0]],
            recorded=self.act == "recorded" or (self.act == "mutated" and self.offline),
            mutations=list(self.changes) if has_changes else [],
            n=1 if self.act == "forward" else self.n,
            notes=notes or None,
            allow_other_address=self.elsewhere,
            allow_provider_side_effects=self.allow,
            script=script,
        )


def read_state(
    step_id: str, query_pairs: Iterable[tuple[str, str]]
) -> tuple[ReplayState, list[str]]:
    """Read a state and what could not be read of it."""
    pairs = list(query_pairs)
    fields = dict(pairs)
    changes, problems = [], []
    for name, value in pairs:
        if name != "change":
            continue
        try:
            changes.append(read_change(value))
        except ValueError as wrong:
            problems.append(f"A change was left out: {wrong}.")
    if len(changes) > MOST:
        problems.append(f"{len(changes)} changes were given; the first {MOST} are kept.")
    act = fields.get("act", "")
    state = ReplayState(
        step_id,
        act=act if act in ACTS else "mutated" if changes else "",
        changes=tuple(changes[:MOST]),
        n=_repeats(fields.get("n", "")),
        offline=fields.get("offline") == "1",
        elsewhere=fields.get("elsewhere") == "1",
        allow=fields.get("allow") == "1",
        editing=fields.get("edit", "")[:512],
    )
    return state, problems


def read_change(text: str) -> Json:
    """Return a change that is written as JSON; raises ValueError for what is none."""
    try:
        found: Any = orjson.loads(text)
    except orjson.JSONDecodeError:
        raise ValueError("it is not JSON") from None
    if not isinstance(found, dict) or not isinstance(found.get("op"), str):
        raise ValueError('a change is an object with an "op"')
    return found


def change_text(change: Json) -> str:
    """Return a change as its field carries it."""
    return orjson.dumps(change).decode()


def _repeats(text: str) -> int:
    return min(max(natural(text, digits=3) or 1, 1), MOST_REPEATS)
