"""What became of a replay: the same bytes or not, the answers side by side, what could not be same.

It tells what `GET /v1/replay/{id}` tells, of the same functions.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final

import apsw
import orjson
from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from hansard_collector.derivation.stored_span import read_step
from hansard_compiler.calls import Json
from hansard_compiler.canonical import canonical_json
from hansard_compiler.errors import ConfigError, NotFoundError
from hansard_compiler.providers.scripted import PROVIDER as SCRIPTED
from hansard_compiler.replay.errors import NotReplayable, ReplayReason
from hansard_compiler.replay.live import TURNS, USD
from hansard_store.principals.model import Principal, Scope
from hansard_store.replays import ReplayRow, get_replay
from hansard_store.steps.queries import StepSkeleton
from hansard_web.app.site import Site, SiteDep
from hansard_web.approvals.worker import person
from hansard_web.diff.steps import compare_steps
from hansard_web.principals.dependencies import principal_of
from hansard_web.replay.descriptions import ChangeText, sentence_of_change
from hansard_web.replay.engine import PLAN_MS
from hansard_web.replay.json import ReplayBody, compared_steps, replay_body
from hansard_web.replay.request import MOST_LIVE, GoOn, ResultInput
from hansard_web.replay.source import find_step
from hansard_web.replay_page.answers import Beside, Spread, beside, spread_view
from hansard_web.replay_page.api import apart, replays_of
from hansard_web.replay_page.form_page import read_script
from hansard_web.replay_page.labels import sentence
from hansard_web.replay_page.state import ReplayState
from hansard_web.sidecar.errors import RecordingDisabled, TooManyCalls
from hansard_web.sidecar.request import MayRead
from hansard_web.ui.format import WAITS, count, duration, money, plural, shorten
from hansard_web.ui.forms import OwnForm

# A fork on its page past the first divergence: the calls and their results, and how to go on.
#
# It asks the same function as `POST /v1/replay/{id}/continue`, and says before what that may cost.

_NANO: Final = 1_000_000_000
_LONGEST: Final = 2_000
_MOST_USD: Final = 1_000
_GO_ON: Final = ("diverged", "waiting", "failed")
_ORIGINS: Final[Mapping[str, tuple[str, str]]] = {
    "recorded": ("history", "from the record"),
    "gate": ("tool", "ran behind the program's gate"),
    "hand": ("user", "given by hand"),
    "blocked": ("blocked", "blocked by the gate"),
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
class _CallRow:
    """A tool call that the model made past the divergence."""

    number: int  # among those of the form, from 0
    call: Json
    arguments: str
    mark: str
    label: str  # of whom, or why it is held
    result: str
    is_open: bool  # a result may be entered


@dataclass(frozen=True, slots=True)
class GoOnForm:
    """What it takes to go on, and what that may cost."""

    after: str  # the step whose calls these are: once it went on, what was typed fits no more
    is_begun: bool  # it went live before
    calls: tuple[_CallRow, ...]
    estimate: str
    bounds: str
    turns: str
    usd: str
    typed: Mapping[str, str]
    may_not: str
    needs_script: bool
    may_allow: bool  # it was refused for what the provider does besides answering
    approval_id: str | None  # what the next turn waits for


@dataclass(frozen=True, slots=True)
class LiveView:
    """What was done live so far."""

    turns: str
    spent: str
    calls: tuple[tuple[int, _CallRow], ...]  # turn, call


def live_view(body: ReplayBody, form: GoOnForm | None) -> LiveView | None:
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
    return LiveView(plural(live["turns"], "live turn"), spent, calls)


def _call(call: Json) -> Json:
    state = call["origin"] if call["state"] == "answered" else call["state"]
    return {**call, "state": state}


def go_on_form(
    body: ReplayBody,
    *,
    may_not: str,
    needs_script: bool,
    typed: Mapping[str, str] | None = None,
) -> GoOnForm | None:
    """Return the form for a fork that stopped; None where there is nothing to go on to."""
    ask, live, fields = body["continuation"], body["live"], dict(typed or {})
    if body["state"] not in _GO_ON or body["recorded"] or ask is None or not ask["calls"]:
        return None
    if fields.get("after", ask["step_id"]) != ask["step_id"]:
        fields = {name: text for name, text in fields.items() if "." not in name}  # of other calls
    left_turns = live["turns_left"] if live else TURNS
    left_usd = live["usd_left"] if live else USD
    return GoOnForm(
        after=ask["step_id"],
        is_begun=live is not None,
        calls=tuple(_row(number, one) for number, one in enumerate(ask["calls"])),
        estimate=_estimate(ask.get("estimate")),
        bounds=_bounds(ask.get("estimate"), left_turns, left_usd),
        turns=fields.get("turns", str(max(left_turns, 1) if left_turns else TURNS)),
        usd=fields.get("usd", f"{left_usd if left_usd > 0 else USD:g}"),
        typed=fields,
        may_not=may_not,
        needs_script=needs_script,
        may_allow="may_allow" in fields,
        approval_id=ask.get("approval_id"),
    )


def _row(number: int, call: Json) -> _CallRow:
    mark, text = _ORIGINS.get(call["state"], ("info", call["state"]))
    if call["state"] == "blocked":
        text = _HELD.get(call["block_reason"], call["message"] or call["block_reason"])
    if call["state"] == "hand" and call["by"]:
        text = f"given by {call['by']}"
    return _CallRow(
        number=number,
        call=call,
        arguments=_text(call["arguments"]),
        mark=mark,
        label=text,
        result=_text(call["result"]) if call.get("result") is not None else "",
        is_open=call["state"] in ("needed", "blocked"),
    )


def _text(value: Any) -> str:
    return shorten(value if isinstance(value, str) else canonical_json(value), _LONGEST)


def _estimate(estimate: Json | None) -> str:
    if estimate is None:
        return "unknown"
    tokens = f"{count(estimate['input_tokens'])} tokens in"
    if estimate["usd"] is None:
        return f"{tokens}; the price of {estimate['model']} is unknown"
    return f"{tokens}, {money(round(estimate['usd'] * _NANO))} by the price list"


def _bounds(estimate: Json | None, turns: int, usd: float) -> str:
    if estimate is None or estimate["usd"] is None:
        return "only the number of turns bounds it"
    most = min(estimate["usd"] * turns, usd) if usd > 0 else 0.0
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
        ResultInput(
            call_id=call["call_id"],
            result=_result(fields[f"result.{number}"]),
            is_error=f"error.{number}" in fields,
        )
        for number, call in enumerate(calls)
        if call["state"] in ("needed", "blocked") and fields.get(f"result.{number}", "").strip()
    ]
    if problems or turns is None or usd is None:
        return None, problems
    after = fields.get("after") or None
    request = GoOn(
        results=results, after=after, max_turns=int(turns), max_usd=usd, script=script,
        allow_provider_side_effects=fields.get("allow") == "1",
    )  # fmt: skip
    return request, []


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


router = APIRouter()

_MOST_TABS: Final = 50
_PROMISES: Final = (
    "The provider does not repeat itself: the same request may have another answer.",
    "Its limits, caches and what it keeps behind an id are those of now, not of then.",
)


@dataclass(frozen=True, slots=True)
class ResultPage:
    """A replay and what it made."""

    body: ReplayBody
    source: StepSkeleton | None  # None: it was deleted meanwhile
    again_href: str | None  # None where its changes are not stored, or too long for an address
    changes: tuple[ChangeText, ...]
    notes: tuple[str, ...]
    took: str
    beside: Beside | None
    tabs: tuple[tuple[str, str, bool], ...]  # of several calls: label, address, whether shown
    spread: Spread | None
    promises: tuple[str, ...]
    poll_href: str | None  # of one that is still being made
    live: LiveView | None
    go_on: GoOnForm | None  # of a fork that stopped
    approval: Json | None  # what a first request waits for
    may_not: str
    problems: tuple[str, ...]  # with the request


@router.get("/replays/{replay_id}")
async def result(request: Request, site: SiteDep, replay_id: str) -> Response:
    return await apart(request, lambda: _answer(request, site, replay_id, "replay_result.html"))


@router.get("/fragments/replays/{replay_id}")
async def progress(request: Request, site: SiteDep, replay_id: str) -> Response:
    """The result without its frame, while it is being made."""
    if request.headers.get("HX-Request") != "true":
        return RedirectResponse(f"/replays/{replay_id}", 303)
    return await apart(request, lambda: _answer(request, site, replay_id, "replay/_result.html"))


@router.post("/replays/{replay_id}/continue", dependencies=[OwnForm, MayRead])
async def go_on(request: Request, site: SiteDep, replay_id: str) -> Response:
    """Have a fork go on live, and go back to its page."""
    form = await request.form()
    estimate = {name: value for name, value in form.items() if isinstance(value, str)}
    return await apart(request, lambda: _go_on(request, site, replay_id, estimate))


def _go_on(request: Request, site: Site, replay_id: str, estimate: Mapping[str, str]) -> Response:
    with site.readers.read(timeout_ms=PLAN_MS) as connection:
        row = get_replay(connection, replay_id)
    calls = ((row.report or {}).get("ask") or {}).get("calls", ())
    script, problems = read_script(estimate.get("script", ""))
    continuation, more = read_go_on(estimate, calls, script)
    problems += more
    status = HTTPStatus.UNPROCESSABLE_ENTITY
    if continuation is not None and not problems:
        try:
            replays_of(request).go_on(row.replay_id, continuation, by=person(request, None))
            return RedirectResponse(f"/replays/{row.replay_id}", HTTPStatus.SEE_OTHER)
        except NotReplayable as why:
            problems, status = [f"{why}."], HTTPStatus.CONFLICT
            if why.reason is ReplayReason.PROVIDER_SIDE_EFFECTS:
                estimate = {**estimate, "may_allow": "1"}
        except (TooManyCalls, RecordingDisabled) as error:
            problems, status = [f"{error}."], HTTPStatus.SERVICE_UNAVAILABLE
        except ConfigError as error:  # a script that is none
            problems = [f"{error}."]
    return _answer(
        request, site, row.replay_id, "replay_result.html", status=status,
        problems=tuple(problems), typed=estimate,
    )  # fmt: skip


def _answer(
    request: Request,
    site: Site,
    replay_id: str,
    template: str,
    *,
    status: HTTPStatus = HTTPStatus.OK,
    problems: tuple[str, ...] = (),
    typed: Mapping[str, str] | None = None,
) -> Response:
    may_not = may_not_go_on(principal_of(request))
    asking = Asking(may_not, problems, typed or {}, site.settings.script is not None)
    with site.readers.read(timeout_ms=PLAN_MS) as connection:
        row = get_replay(connection, replay_id)
        if row.replay_id != replay_id:
            return RedirectResponse(f"/replays/{row.replay_id}", 303)
        chosen = request.query_params.get("answer", "")
        page = result_page(connection, row, chosen=chosen, asking=asking)
    if template.startswith("replay/"):
        return site.renderer.fragment(request, template, page=page)
    return site.renderer.page(request, template, here="runs", page=page, status=status)


@dataclass(frozen=True, slots=True)
class Asking:
    """Who looks, and what was typed into the form that goes on."""

    may_not: str = ""
    problems: tuple[str, ...] = ()
    typed: Mapping[str, str] = field(default_factory=dict)
    has_script: bool = False  # the server knows the one of the scripted model


def result_page(
    connection: apsw.Connection, row: ReplayRow, *, chosen: str, asking: Asking
) -> ResultPage:
    """Read a replay for its page; `chosen` counts its calls from 1."""
    now_ns = time.time_ns()
    body = replay_body(connection, row, now_ns=now_ns, with_comparison=False)
    source = find_step(connection, row.source_step_id, now_ns=now_ns)
    left, right, at = _pair(row, chosen)
    compared = None if row.state == "running" else _beside(
        connection, left, right, title=_title(row, at), now_ns=now_ns
    )  # fmt: skip
    form = go_on_form(
        body,
        may_not=asking.may_not,
        needs_script=not asking.has_script and _is_scripted(connection, row, now_ns=now_ns),
        typed=asking.typed,
    )
    recorded = source.tokens.output if source is not None and source.tokens else None
    return ResultPage(
        body=body,
        source=source,
        again_href=_again(row, body),
        changes=tuple(map(sentence_of_change, body["mutations"])),
        notes=tuple(map(sentence, body["notes"])),
        took=""
        if row.ended_ns is None or row.run_id is None
        else duration(row.ended_ns - row.started_ns),
        beside=compared,
        tabs=_tabs(row, at),
        spread=spread_view(body["spread"], row, recorded),
        promises=()
        if row.is_recorded or row.run_id is None or row.state in ("refused", "running")
        else _PROMISES,
        poll_href=f"/fragments/replays/{row.replay_id}" if row.state == "running" else None,
        live=live_view(body, form),
        go_on=form,
        approval=_approval(body),
        may_not=asking.may_not,
        problems=asking.problems,
    )


def _approval(body: ReplayBody) -> Json | None:
    ask: Json | None = body["continuation"]
    is_waiting = body["state"] == "waiting" and ask is not None and ask["kind"] == "approval"
    return ask if is_waiting else None


def _pair(row: ReplayRow, chosen: str) -> tuple[str, str | None, int]:
    """Return the two steps that are shown side by side, and which call of the replay that is."""
    left, right = compared_steps(row)
    at = next((n for n, one in enumerate(row.steps) if right in _ids(one)), 0)
    if chosen.isascii() and chosen.isdigit() and 1 <= int(chosen[:6]) <= len(row.steps):
        at = int(chosen) - 1
        one = row.steps[at]
        left, right = one["source_step_id"], one["step_id"] or one["compile_step_id"]
    return left, right, at


def _ids(one: Json) -> tuple[Any, Any]:
    return one["step_id"], one["compile_step_id"]


def _beside(
    connection: apsw.Connection, left: str, right: str | None, *, title: str, now_ns: int
) -> Beside | None:
    if right is None:
        return None
    try:
        return beside(compare_steps(connection, left, right, now_ns=now_ns), title=title)
    except NotFoundError:  # deleted meanwhile
        return None


def _title(row: ReplayRow, at: int) -> str:
    if len(row.steps) < 2:
        return "Replay"
    word = "turn" if row.mode == "forward" else "answer"
    return f"Replay, {word} {at + 1} of {len(row.steps)}"


def _tabs(row: ReplayRow, at: int) -> tuple[tuple[str, str, bool], ...]:
    if len(row.steps) < 2:
        return ()
    path = f"/replays/{row.replay_id}?answer="
    return tuple(
        (str(number + 1), f"{path}{number + 1}", number == at)
        for number, _ in enumerate(row.steps[:_MOST_TABS])
    )


def _again(row: ReplayRow, body: ReplayBody) -> str | None:
    if body["recipe"] is None:
        return None
    changes: Sequence[Json] = body["mutations"]
    act = "recorded" if row.is_recorded and row.mode == "exact" else row.mode
    state = ReplayState(
        row.source_step_id,
        act=act,
        changes=tuple(changes),
        n=row.repeats,
        offline=row.is_recorded and row.mode == "mutated",
    )
    return None if state.is_long else state.href()


def _is_scripted(connection: apsw.Connection, row: ReplayRow, *, now_ns: int) -> bool:
    """Whether the last call of a fork went to the scripted model."""
    last = row.steps[-1]["step_id"] if row.steps else None
    step = find_step(connection, last, now_ns=now_ns)
    if step is None:
        return False
    call = read_step(connection, step.id).normal.call
    return call is not None and call.provider == SCRIPTED
