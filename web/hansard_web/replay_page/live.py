"""A fork on its page past the first divergence: the calls and their results, and how to go on.

It asks the same function as `POST /v1/replay/{id}/continue`, and says before what that may cost.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson

from hansard_compiler.calls import Json
from hansard_compiler.canonical import canonical_json
from hansard_compiler.replay.live import TURNS, USD
from hansard_store.principals.model import Principal, Scope
from hansard_web.api.values import Body
from hansard_web.replay.request import MOST_LIVE, GivenResult, GoOn
from hansard_web.ui.format import WAITS, count, money, plural, shorten

_NANO: Final = 1_000_000_000
_LONGEST: Final = 2_000
_MOST_USD: Final = 1_000
_GO_ON: Final = ("diverged", "waiting", "failed")
_ORIGINS: Final[Mapping[str, tuple[str, str]]] = {
    "recorded": ("history", "from the record"),
    "gate": ("tool", "ran behind the program's gate"),
    "hand": ("user", "given by hand"),
    "held": ("blocked", "held by the gate"),
    "needed": ("open", "no result yet"),
}
_HELD: Final[Mapping[str, str]] = {
    "pending": WAITS,
    "rejected": "was rejected",
    "expired": "nobody decided in time",
    "policy_denied": "a rule denies it",
    "unclassified": "the tool has no class",
    "arguments_cut": "secrets were cut out of its arguments",
}


@dataclass(frozen=True, slots=True)
class CallRow:
    """A tool call that the model made past the divergence."""

    number: int  # among those of the form, from 0
    call_id: str
    name: str
    arguments: str
    mark: str
    state: str
    said: str  # of whom, or why it is held
    result: str
    approval_id: str | None
    recorded_in: str | None
    is_open: bool  # a result may be given


@dataclass(frozen=True, slots=True)
class GoOnForm:
    """What it takes to go on, and what that may cost."""

    action: str
    after: str  # the step whose calls these are: once it went on, what was typed fits no more
    is_begun: bool  # it went live before
    calls: tuple[CallRow, ...]
    estimate: str
    bounds: str
    turns: str
    usd: str
    typed: Mapping[str, str]
    may_not: str
    needs_script: bool
    button: str
    may_allow: bool  # it was refused for what the provider does besides answering
    approval_id: str | None  # what the next turn waits for

    @property
    def is_waiting(self) -> bool:
        """Whether a result is missing: without it no further turn is sent."""
        return any(one.is_open for one in self.calls)


@dataclass(frozen=True, slots=True)
class LiveView:
    """What was done live so far."""

    turns: str
    spent: str
    by: str
    calls: tuple[tuple[int, CallRow], ...]  # turn, call


def live_view(body: Body, form: GoOnForm | None) -> LiveView | None:
    """Return what was done live; None for a fork that never went on.

    Calls that the form shows are left to it.
    """
    live = body["live"]
    if live is None:
        return None
    newest = max((one["turn"] for one in live["calls"]), default=0)
    calls = tuple(
        (one["turn"], _row(0, _call(one)))
        for one in live["calls"]
        if form is None or one["turn"] < newest
    )
    spent = money(round(live["spent_usd"] * _NANO))
    return LiveView(plural(live["turns"], "live turn"), spent, live["by"], calls)


def _call(told: Json) -> Json:
    state = told["origin"] if told["state"] == "answered" else told["state"]
    return {**told, "state": state}


def go_on_form(
    body: Body,
    *,
    may_not: str,
    needs_script: bool,
    typed: Mapping[str, str] | None = None,
) -> GoOnForm | None:
    """Return the form for a fork that stopped; None where there is nothing to go on to."""
    ask, live, given = body["continuation"], body["live"], dict(typed or {})
    if body["state"] not in _GO_ON or body["recorded"] or ask is None or not ask["calls"]:
        return None
    if given.get("after", ask["step_id"]) != ask["step_id"]:
        given = {name: text for name, text in given.items() if "." not in name}  # of other calls
    left_turns = live["turns_left"] if live else TURNS
    left_usd = live["usd_left"] if live else USD
    is_begun = live is not None
    return GoOnForm(
        action=f"/replays/{body['replay_id']}/continue",
        after=ask["step_id"],
        is_begun=is_begun,
        calls=tuple(_row(number, one) for number, one in enumerate(ask["calls"])),
        estimate=_estimate(ask.get("estimate")),
        bounds=_bounds(ask.get("estimate"), left_turns, left_usd),
        turns=given.get("turns", str(max(left_turns, 1) if left_turns else TURNS)),
        usd=given.get("usd", f"{left_usd if left_usd > 0 else USD:g}"),
        typed=given,
        may_not=may_not,
        needs_script=needs_script,
        button="Go on live" if not is_begun else "Go on",
        may_allow="may_allow" in given,
        approval_id=ask.get("approval_id"),
    )


def _row(number: int, call: Json) -> CallRow:
    mark, said = _ORIGINS.get(call["state"], ("info", call["state"]))
    if call["state"] == "held":
        said = _HELD.get(call["held_because"], call["message"] or call["held_because"])
    if call["state"] == "hand" and call["by"]:
        said = f"given by {call['by']}"
    return CallRow(
        number=number,
        call_id=call["call_id"],
        name=call["name"],
        arguments=_text(call["arguments"]),
        mark=mark,
        state=call["state"],
        said=said,
        result=_text(call["result"]) if call.get("result") is not None else "",
        approval_id=call["approval_id"],
        recorded_in=call.get("recorded_in"),
        is_open=call["state"] in ("needed", "held"),
    )


def _text(value: Any) -> str:
    return shorten(value if isinstance(value, str) else canonical_json(value), _LONGEST)


def _estimate(told: Json | None) -> str:
    if told is None:
        return "unknown"
    tokens = f"{count(told['input_tokens'])} tokens in"
    if told["usd"] is None:
        return f"{tokens}; the price of {told['model']} is unknown"
    return f"{tokens}, {money(round(told['usd'] * _NANO))} by the price list"


def _bounds(told: Json | None, turns: int, usd: float) -> str:
    if told is None or told["usd"] is None:
        return "only the number of turns bounds it"
    most = min(told["usd"] * turns, usd) if usd > 0 else 0.0
    return f"{plural(turns, 'turn')} at that price: {money(round(most * _NANO))}; later ones grow"


# ---- the form, read


def read_go_on(
    fields: Mapping[str, str], calls: Sequence[Json], script: Json | None
) -> tuple[GoOn | None, list[str]]:
    """Return what a form asks for, or what is wrong with it."""
    problems: list[str] = []
    turns = _number(fields.get("turns", ""))
    if turns is None or not 1 <= turns <= MOST_LIVE or turns != int(turns):
        problems.append(f"Turns: a whole number from 1 to {MOST_LIVE}.")
    usd = _number(fields.get("usd", ""))
    if usd is None or not 0 <= usd <= _MOST_USD:
        problems.append(f"Dollars: a number from 0 to {_MOST_USD:,}.")
    results = [
        GivenResult(
            call_id=call["call_id"],
            result=_result(fields[f"result.{number}"]),
            is_error=f"error.{number}" in fields,
        )
        for number, call in enumerate(calls)
        if call["state"] in ("needed", "held") and fields.get(f"result.{number}", "").strip()
    ]
    if problems or turns is None or usd is None:
        return None, problems
    after = fields.get("after") or None
    asked = GoOn(
        results=results, after=after, max_turns=int(turns), max_usd=usd, script=script,
        allow_provider_side_effects=fields.get("allow") == "1",
    )  # fmt: skip
    return asked, []


def _number(text: str) -> float | None:
    try:
        found = float(text.strip())
    except ValueError:
        return None
    return found if math.isfinite(found) else None


def _result(text: str) -> Any:
    """Return what was typed: an object or a list where it is one, else the text as it stands."""
    try:
        found = orjson.loads(text)
    except orjson.JSONDecodeError:
        return text
    return found if isinstance(found, dict | list) else text


def may_not_go_on(token: Principal | None) -> str:
    """Return why the holder of a token cannot have a fork go on, "" for who can."""
    if token is None or token.allows(Scope.DECIDE):
        return ""
    return "To go on sends what was recorded and spends money: that takes the scope decide."
