"""A model call made again: which acts there are, what would change, what it costs, and sending it.

The page asks the same functions as `POST /v1/replay`: it plans, previews and starts, and no more.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Any, Final

import orjson
from fastapi import APIRouter
from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from hansard_compiler.calls import Json
from hansard_compiler.errors import ConfigError, HansardError
from hansard_compiler.replay.errors import NotReplayable, ReplayReason
from hansard_store.principals.model import Scope
from hansard_store.runs.queries import RunItem, get_run
from hansard_store.steps.queries import StepSkeleton, get_step
from hansard_web.app.readers import Readers
from hansard_web.app.site import Site, SiteDep
from hansard_web.diff.page.detail import PathRow
from hansard_web.principals.dependencies import principal_of
from hansard_web.replay.descriptions import BASES, ChangeText, sentence_of_change
from hansard_web.replay.engine import PLAN_MS, Replays
from hansard_web.replay.fork.forward import following
from hansard_web.replay.json import ReplayBranch, replays_of_step
from hansard_web.replay.preview import Preview
from hansard_web.replay.request import ReplayInput
from hansard_web.replay.transport.turn import ReplayTurn
from hansard_web.replay_page.api import apart, replays_of
from hansard_web.replay_page.fields import fold_fields
from hansard_web.replay_page.form import Form, form_of
from hansard_web.replay_page.labels import (
    Flip,
    RefusalLabel,
    blocked_refusal,
    cost_sentence,
    flips_sentence,
    path_rows,
    refusal_sentence,
    sentence,
)
from hansard_web.replay_page.state import ACTS, ReplayState, read_state
from hansard_web.sidecar.errors import RecordingDisabled, TooManyCalls
from hansard_web.sidecar.request import MayRead
from hansard_web.ui.format import count, file_size, plural
from hansard_web.ui.forms import OwnForm

# What a replay would do, as its form shows it: made of the very body that the API answers.

_MOST_FLIPS: Final = 60
_MARKS: Final = {"@": "hunk", "-": "del", "+": "ins"}
_SECTIONS: Final = (
    ("stable_prefix", "stable"), ("task_context", "task"), ("volatile_suffix", "volatile"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class BudgetRow:
    """One compile's budget as a bar. parts: (class, from %, width %)."""

    label: str
    used: str
    parts: tuple[tuple[str, float, float], ...]


@dataclass(frozen=True, slots=True)
class DiffLine:
    """A line of a unified diff."""

    kind: str  # hunk del ins same
    text: str


@dataclass(frozen=True, slots=True)
class PreviewView:
    """What would be sent, and what is different about it."""

    body: Preview
    to: str
    recorded_at: str  # the address that the recorded call went to; "" where nothing is sent
    tokens: str
    cost: str
    budgets: tuple[BudgetRow, ...]
    flips: tuple[Flip, ...]
    more: int
    request: str
    paths: tuple[PathRow, ...]
    notes: tuple[str, ...]
    needs_script: bool  # a scripted model answers, and the caller has to bring its script
    basis: str
    bytes: tuple[DiffLine, ...]  # of the request, against the recorded one
    is_bytes_cut: bool


def preview_view(body: Preview) -> PreviewView:
    """Return a preview for the page."""
    flips = flips_sentence(body["compile"])
    request, tokens = body["request"], body["tokens"]
    diff = request["diff"]
    return PreviewView(
        body=body,
        to=_to(body),
        recorded_at=_recorded_at(body),
        tokens=f"about {count(tokens['estimated_input'])} tokens in",
        cost=cost_sentence(body["cost"], sends=body["sends"]),
        budgets=_budgets(body["compile"]),
        flips=tuple(flips[:_MOST_FLIPS]),
        more=max(len(flips) - _MOST_FLIPS, 0),
        request=_request(request),
        paths=path_rows(((diff or {}).get("json") or {"changes": []})["changes"]),
        notes=tuple(map(sentence, (*body["notes"], *body["omitted"]))),
        needs_script=body["provider"] == "scripted" and _is_not_set_up(body),
        basis=BASES[body["basis"]],
        bytes=diff_lines(diff),
        is_bytes_cut=bool(diff and diff["is_unified_truncated"]),
    )


def diff_lines(diff: Json | None) -> tuple[DiffLine, ...]:
    """Return the lines of a byte diff; none where the bytes are equal or not known."""
    text = (diff or {}).get("unified") or ""
    return tuple(DiffLine(_MARKS.get(one[:1], "same"), one) for one in text.splitlines())


def _is_not_set_up(body: Preview) -> bool:
    refusal = body["refusal"]
    return refusal is not None and refusal["reason"] == ReplayReason.PROVIDER_NOT_CONFIGURED.value


def _to(body: Preview) -> str:
    address = body["address"]
    model = f"{body['provider']} {body['model']}".strip()
    return f"{model}, {address}" if body["sends"] and address.startswith("http") else model


def _recorded_at(body: Preview) -> str:
    if not body["sends"] or not body["address"].startswith("http"):
        return ""
    return body["recorded_address"] or "not recorded"


def _request(request: Json) -> str:
    size, diff = file_size(request["size"]), request["diff"]
    if not request["size"]:
        return "No request: only the compile is made again."
    if request["same"]:
        return f"{size}, the recorded bytes: the hash matches the record."
    if diff["left_size"] is None:
        return f"{size}; the recorded request is not stored here to be compared."
    text = f"{size} in place of {file_size(diff['left_size'])}"
    at = diff["first_difference"]
    if at is None:
        return f"{text}."
    changes = diff["json"]
    if changes is not None and not changes["changes"] and not changes["is_truncated"]:
        return (
            f"{size}: the same JSON, written otherwise (the order of keys) from byte {count(at)}."
        )
    return f"{text}; the first byte that differs is {count(at)}."


def _budgets(compiled: Json | None) -> tuple[BudgetRow, ...]:
    if compiled is None:
        return ()
    amounts = {one["name"]: one for one in compiled["budget"]}
    sections = {one["name"]: one for one in compiled["by_section"]}
    sides = ("left", "right")
    whole = max((amounts.get("budget", {}).get(side) or 0 for side in sides), default=0)
    if not whole:
        return ()
    labels = {"left": "recorded", "right": "changed"}
    rows = []
    for side in sides:
        lengths = [(css, (sections.get(name) or {}).get(side) or 0) for name, css in _SECTIONS]
        lengths += [("free", amounts.get("free", {}).get(side) or 0),
                    ("reserve", amounts.get("reserve", {}).get(side) or 0)]  # fmt: skip
        used = amounts.get("used", {}).get(side)
        used_text = "unknown" if used is None else count(used)
        rows.append(BudgetRow(labels[side], used_text, _parts(lengths, whole)))
    return tuple(rows)


def _parts(lengths: list[tuple[str, int]], whole: int) -> tuple[tuple[str, float, float], ...]:
    parts, at = [], 0
    for css, length in lengths:
        parts.append((css, round(100 * at / whole, 2), round(100 * length / whole, 2)))
        at += length
    return tuple(parts)


# The acts of a replay: what each of them does, and why one of them cannot be done.

_SCRIPTED: Final = "scripted"
_ENDS_HERE: Final = RefusalLabel("no_later_call", "No later call of the run holds this answer")
READ_ONLY: Final = RefusalLabel(
    "recording_disabled", "This process only shows what a collector stores; replay it there"
)


@dataclass(frozen=True, slots=True)
class _Look:
    """What planning a call came to: a call that is ready, or why there is none."""

    turn: ReplayTurn | None
    refusal: RefusalLabel | None
    needs_script: bool = False


@dataclass(frozen=True, slots=True)
class _Act:
    """One kind of replay, as a card."""

    key: str
    label: str
    say: str
    icon: str
    truth: str  # what is true of it
    is_current: bool
    refusal: RefusalLabel | None
    needs_script: bool = False


@dataclass(frozen=True, slots=True)
class Acts:
    """The four acts, and the call without changes, for the form."""

    all: tuple[_Act, ...]
    base: ReplayTurn | None

    @property
    def current(self) -> _Act | None:
        return next((act for act in self.all if act.is_current), None)


def look_at(replays: Replays, request: ReplayInput) -> _Look:
    """Plan a call; its refusal is shown. A scripted model without its script is none."""
    try:
        turn = replays.plan(request)
    except NotReplayable as why:
        return _Look(None, refusal_sentence(why))
    except HansardError as error:
        return _Look(None, RefusalLabel(error.code, str(error)))
    if turn.blocked is None or turn.blocked.reason is ReplayReason.PROVIDER_SIDE_EFFECTS:
        return _Look(turn, None)  # it can be allowed: the preview shows what, and offers it
    if (
        turn.destination.family == _SCRIPTED
        and turn.blocked.reason is ReplayReason.PROVIDER_NOT_CONFIGURED
    ):
        return _Look(turn, None, needs_script=True)
    return _Look(turn, refusal_sentence(turn.blocked))


def read_acts(replays: Replays | None, readers: Readers, state: ReplayState) -> Acts:
    """Find out which acts a step lets be done; where none was chosen, the first that it lets.

    Without `replays` none of them can be done here.
    """
    looks = dict.fromkeys(ACTS, _Look(None, READ_ONLY))
    if replays is not None:
        looks = _looks(replays, readers, state)
    possible = [name for name, look in looks.items() if look.refusal is None]
    current = state.act or (possible[0] if possible else "exact")
    acts = tuple(_act(name, look, current) for name, look in looks.items())
    return Acts(acts, looks["mutated"].turn)


def _looks(replays: Replays, readers: Readers, state: ReplayState) -> dict[str, _Look]:
    step, elsewhere = state.step_id, state.elsewhere
    exact = look_at(replays, ReplayInput(step_id=step, mode="exact", allow_other_address=elsewhere))
    recorded = look_at(replays, ReplayInput(step_id=step, mode="exact", recorded=True))
    # Offline: a provider that is not set up here can be changed for one that is.
    base = look_at(replays, ReplayInput(step_id=step, mode="mutated", recorded=True))
    forward = _forward(readers, exact)
    return {"exact": exact, "recorded": recorded, "mutated": base, "forward": forward}


def _forward(readers: Readers, exact: _Look) -> _Look:
    if exact.turn is None or exact.refusal is not None:
        return exact
    with readers.read(timeout_ms=PLAN_MS) as connection:
        later = following(connection, exact.turn.source)
    return exact if later is not None else _Look(None, _ENDS_HERE)


def _act(name: str, look: _Look, current: str) -> _Act:
    label, say, icon = {
        "exact": ("Exact", "Send the stored request again, byte for byte.", "replay"),
        "recorded": ("From the recording", "Answer with the recorded bytes.", "history"),
        "mutated": (
            "With changes",
            "Change what goes in, see what it does, then send.",
            "compile",
        ),
        "forward": ("From here on", "Run the later turns against recorded tool results.", "fork"),
    }[name]
    return _Act(
        name, label, say, icon, _truth(name, look.turn), name == current, look.refusal,
        look.needs_script,
    )  # fmt: skip


def _truth(name: str, turn: ReplayTurn | None) -> str:
    if name == "forward":
        return "No tool is run; it stops at the first difference and asks."
    if name == "recorded":
        return "Nothing is sent or paid; no key, no network."
    if name == "exact":
        size = "" if turn is None or not turn.request else f"{file_size(len(turn.request))}: "
        return f"{size}the same bytes go out; the model may answer otherwise."
    if turn is not None and turn.remade is not None:
        items = plural(len(turn.remade.before.items), "item")
        return f"From the stored compile request, {items}; you see what it does before it is sent."
    if turn is not None and turn.recorded is not None:
        return "The recorded bytes are edited where you say, and nowhere else."
    return "Rebuilt from telemetry: the original request may have had more in it."


router = APIRouter()

_STATE_FIELDS: Final = frozenset({"act", "change", "n", "offline", "elsewhere", "edit", "allow"})
_LONGEST_NOTE: Final = 10_000
_NOT_SET_UP: Final = (
    ReplayReason.PROVIDER_NOT_CONFIGURED.value
)  # of a scripted model: without its script
Pairs = Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Typed:
    """What was typed and is no part of the address."""

    script: str = ""
    notes: str = ""


@dataclass(frozen=True, slots=True)
class FormPage:
    """A step with the ways to replay it."""

    step: StepSkeleton
    run: RunItem
    state: ReplayState
    acts: Acts
    form: Form | None
    changes: tuple[ChangeText, ...]
    preview: PreviewView | None
    refusal: RefusalLabel | None  # of this request
    recorded_as: str | None  # the replay that a refusal was recorded as
    elsewhere_href: str | None
    problems: tuple[str, ...]
    may_not: str  # why this reader cannot send; "" who can
    typed: Typed
    needs_script: bool
    send: str  # what the button says
    replays: tuple[ReplayBranch, ...]

    @property
    def can_send(self) -> bool:
        return self.refusal is None and not self.may_not


@router.get("/replay/{step_id}")
async def form(request: Request, site: SiteDep, step_id: str) -> Response:
    pairs = request.query_params.multi_items()
    return await apart(request, lambda: _changed(request, site, step_id, pairs))


@router.post("/replay/{step_id}/preview", dependencies=[OwnForm])
async def change(request: Request, site: SiteDep, step_id: str) -> Response:
    """Read the form into the list of changes, and show what they would do."""
    pairs = _texts(await request.form())
    return await apart(request, lambda: _changed(request, site, step_id, pairs, is_form=True))


@router.post("/replay/{step_id}", dependencies=[OwnForm, MayRead])
async def send(request: Request, site: SiteDep, step_id: str) -> Response:
    """Begin the replay, and go to it."""
    pairs = _texts(await request.form())
    return await apart(request, lambda: _send(request, site, step_id, pairs))


def _changed(
    request: Request, site: Site, step_id: str, pairs: Pairs, *, is_form: bool = False
) -> Response:
    state, problems = read_state(_whole_id(site, step_id), pairs)
    has_fields = any(name not in _STATE_FIELDS and name != "csrf" for name, _ in pairs)
    if has_fields:
        changes, more = fold_fields(state.changes, pairs)
        problems += more
        state = replace(state, changes=changes, editing="")
    is_elsewhere = state.step_id != step_id or has_fields or is_form
    if is_elsewhere and not problems and not state.is_long:
        return RedirectResponse(state.href(), HTTPStatus.SEE_OTHER)
    status = HTTPStatus.UNPROCESSABLE_ENTITY if is_form and problems else HTTPStatus.OK
    return _page(request, site, state, problems=problems, status=status)


def _send(request: Request, site: Site, step_id: str, pairs: Pairs) -> Response:
    state, problems = read_state(_whole_id(site, step_id), pairs)
    changes = dict(pairs)
    typed = Typed(changes.get("script", ""), changes.get("notes", "").strip())
    script, more = read_script(typed.script)
    problems += more
    if len(typed.notes) > _LONGEST_NOTE:
        problems.append(f"The note is longer than {_LONGEST_NOTE:,} characters.")
    if problems:
        status = HTTPStatus.UNPROCESSABLE_ENTITY
        return _page(request, site, state, problems=problems, typed=typed, status=status)
    try:
        row = replays_of(request).start(state.asked(script=script, notes=typed.notes))
    except NotReplayable as why:
        return _page(request, site, state, typed=typed, why=why, status=HTTPStatus.CONFLICT)
    except (TooManyCalls, RecordingDisabled, ConfigError) as error:
        is_script = isinstance(error, ConfigError)  # one that is none
        status = HTTPStatus.UNPROCESSABLE_ENTITY if is_script else HTTPStatus.SERVICE_UNAVAILABLE
        return _page(request, site, state, problems=[str(error)], typed=typed, status=status)
    return RedirectResponse(f"/replays/{row.replay_id}", HTTPStatus.SEE_OTHER)


def _page(
    request: Request,
    site: Site,
    state: ReplayState,
    *,
    problems: Sequence[str] = (),
    typed: Typed | None = None,
    why: NotReplayable | None = None,
    status: HTTPStatus = HTTPStatus.OK,
) -> Response:
    with site.readers.read() as connection:
        now_ns = time.time_ns()
        step = get_step(connection, state.step_id, now_ns=now_ns)
        run = get_run(connection, step.run_id, now_ns=now_ns)
        made = replays_of_step(connection, step.step_id)
    replays: Replays | None = request.app.state.replays
    acts = read_acts(replays, site.readers, state)
    current = acts.current
    state = replace(state, act=current.key if current else "exact")
    preview, refusal = _preview(replays, acts, state)
    if why is not None:
        refusal = refusal_sentence(why)
    page = FormPage(
        step=step,
        run=run,
        state=state,
        acts=acts,
        form=form_of(acts.base, state) if state.act == "mutated" and acts.base else None,
        changes=tuple(map(sentence_of_change, state.changes)),
        preview=preview,
        refusal=refusal,
        recorded_as=None if why is None else why.replay_id,
        elsewhere_href=_elsewhere(state, refusal),
        problems=tuple(problems),
        may_not=may_not(request),
        typed=typed or Typed(),
        needs_script=preview is not None and preview.needs_script,
        send=_send_label(
            state, needs_approval=preview is not None and preview.body["needs_approval"]
        ),
        replays=tuple(made),
    )
    return site.renderer.page(request, "replay.html", here="runs", page=page, status=status)


def _preview(
    replays: Replays | None, acts: Acts, state: ReplayState
) -> tuple[PreviewView | None, RefusalLabel | None]:
    """Return what this request would do, or why it cannot be done."""
    current = acts.current
    if replays is None or current is None or current.refusal is not None:
        return None, READ_ONLY if current is None else current.refusal
    try:
        body = replays.preview(state.asked())
    except NotReplayable as why:
        return None, refusal_sentence(why)
    except HansardError as error:
        return None, RefusalLabel(error.code, str(error))
    view = preview_view(body)
    blocked = body["refusal"]
    if blocked is None or (view.needs_script and blocked["reason"] == _NOT_SET_UP):
        return view, None
    return view, blocked_refusal(blocked)


def _elsewhere(state: ReplayState, refusal: RefusalLabel | None) -> str | None:
    if refusal is None or refusal.code != ReplayReason.OTHER_ADDRESS.value or state.is_long:
        return None
    return state.href(elsewhere=True)


def _send_label(state: ReplayState, *, needs_approval: bool = False) -> str:
    if needs_approval:
        return "Ask for the approval"
    if state.act == "recorded":
        return "Answer from the recording"
    if state.act == "forward":
        return "Go on from here"
    if state.act == "exact":
        return "Send again"
    many = plural(len(state.changes), "change") if state.changes else "no change"
    return f"Compile with {many}" if state.offline else f"Send with {many}"


def may_not(request: Request) -> str:
    """Return why the reader of a request cannot send a replay, "" for one who can."""
    token = principal_of(request)
    if token is None or token.allows(Scope.DECIDE):
        return ""
    scopes = ", ".join(sorted(token.scopes))
    return (
        f"Your token may {scopes}. A replay sends what was recorded and spends money: "
        "that takes the scope decide."
    )


def _whole_id(site: Site, step_id: str) -> str:
    with site.readers.read() as connection:
        return get_step(connection, step_id, now_ns=time.time_ns()).step_id


def _texts(form: FormData) -> list[tuple[str, str]]:
    return [(name, value) for name, value in form.multi_items() if isinstance(value, str)]


def read_script(text: str) -> tuple[Json | None, list[str]]:
    """Return the script of a scripted model as it was typed, or what is wrong with it."""
    if not text.strip():
        return None, []
    try:
        found: Any = orjson.loads(text)
    except orjson.JSONDecodeError as wrong:
        return None, [f"The script is not JSON: {wrong}."]
    if not isinstance(found, dict):
        return None, ["The script is an object."]
    return found, []
