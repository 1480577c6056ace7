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
from hansard_compiler.replay.errors import NotReplayable, Reason
from hansard_store.principals.model import Scope
from hansard_store.runs.queries import RunItem, get_run
from hansard_store.steps.queries import StepSkeleton, get_step
from hansard_web.api.values import Body
from hansard_web.app.site import Site, SiteDep
from hansard_web.principals.requests import principal_of
from hansard_web.replay.descriptions import SaidChange, say_change
from hansard_web.replay.engine import Replays
from hansard_web.replay.json import replays_of_step
from hansard_web.replay_page.acts import READ_ONLY, Acts, read_acts, refused_acts
from hansard_web.replay_page.api import apart, replays_of
from hansard_web.replay_page.fields import fold_fields
from hansard_web.replay_page.form import Form, form_of
from hansard_web.replay_page.labels import (
    Refusal,
    blocked_refusal,
    say_refusal,
)
from hansard_web.replay_page.preview import PreviewView, preview_view
from hansard_web.replay_page.state import ReplayState, read_state
from hansard_web.sidecar.errors import RecordingOff, TooManyCalls
from hansard_web.sidecar.request import MayRead
from hansard_web.ui.format import plural
from hansard_web.ui.forms import OwnForm

router = APIRouter()

_STATE_FIELDS: Final = frozenset({"act", "change", "n", "offline", "elsewhere", "edit", "allow"})
_LONGEST_NOTE: Final = 10_000
_NOT_SET_UP: Final = Reason.PROVIDER_NOT_CONFIGURED.value  # of a scripted model: without its script
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
    changes: tuple[SaidChange, ...]
    preview: PreviewView | None
    refusal: Refusal | None  # of what is asked now
    recorded_as: str | None  # the replay that a refusal was recorded as
    elsewhere_href: str | None
    problems: tuple[str, ...]
    may_not: str  # why this reader cannot send; "" who can
    typed: Typed
    needs_script: bool
    send: str  # what the button says
    replays: tuple[Body, ...]

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
    request: Request, site: Site, wanted: str, pairs: Pairs, *, is_form: bool = False
) -> Response:
    state, problems = read_state(_whole_id(site, wanted), pairs)
    has_fields = any(name not in _STATE_FIELDS and name != "csrf" for name, _ in pairs)
    if has_fields:
        changes, more = fold_fields(state.changes, pairs)
        problems += more
        state = replace(state, changes=changes, editing="")
    is_elsewhere = state.step_id != wanted or has_fields or is_form
    if is_elsewhere and not problems and not state.is_long:
        return RedirectResponse(state.href(), HTTPStatus.SEE_OTHER)
    status = HTTPStatus.UNPROCESSABLE_ENTITY if is_form and problems else HTTPStatus.OK
    return _page(request, site, state, problems=problems, status=status)


def _send(request: Request, site: Site, wanted: str, pairs: Pairs) -> Response:
    state, problems = read_state(_whole_id(site, wanted), pairs)
    told = dict(pairs)
    typed = Typed(told.get("script", ""), told.get("notes", "").strip())
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
    except (TooManyCalls, RecordingOff) as error:
        status = HTTPStatus.SERVICE_UNAVAILABLE
        return _page(request, site, state, problems=[str(error)], typed=typed, status=status)
    except ConfigError as error:  # a script that is none
        status = HTTPStatus.UNPROCESSABLE_ENTITY
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
    acts = (
        refused_acts(state, READ_ONLY)
        if replays is None
        else read_acts(replays, site.readers, state)
    )
    current = acts.current
    state = replace(state, act=current.key if current else "exact")
    preview, refusal = _preview(replays, acts, state)
    if why is not None:
        refusal = say_refusal(why)
    page = FormPage(
        step=step,
        run=run,
        state=state,
        acts=acts,
        form=form_of(acts.base, state) if state.act == "mutated" and acts.base else None,
        changes=tuple(map(say_change, state.changes)),
        preview=preview,
        refusal=refusal,
        recorded_as=None if why is None else why.replay_id,
        elsewhere_href=_elsewhere(state, refusal),
        problems=tuple(problems),
        may_not=may_not(request),
        typed=typed or Typed(),
        needs_script=preview is not None and preview.needs_script,
        send=_send_label(state, needs_approval=preview is not None and preview.needs_approval),
        replays=tuple(made),
    )
    return site.renderer.page(request, "replay.html", here="runs", page=page, status=status)


def _preview(
    replays: Replays | None, acts: Acts, state: ReplayState
) -> tuple[PreviewView | None, Refusal | None]:
    """Return what is asked now would do, or why it cannot be done."""
    current = acts.current
    if replays is None or current is None or current.refusal is not None:
        return None, READ_ONLY if current is None else current.refusal
    try:
        body = replays.preview(state.asked())
    except NotReplayable as why:
        return None, say_refusal(why)
    except HansardError as error:
        return None, Refusal(error.code, str(error))
    view = preview_view(body)
    blocked = body["refusal"]
    if blocked is None or (view.needs_script and blocked["reason"] == _NOT_SET_UP):
        return view, None
    return view, blocked_refusal(blocked)


def _elsewhere(state: ReplayState, refusal: Refusal | None) -> str | None:
    if refusal is None or refusal.code != Reason.OTHER_ADDRESS.value or state.is_long:
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


def _whole_id(site: Site, wanted: str) -> str:
    with site.readers.read() as connection:
        return get_step(connection, wanted, now_ns=time.time_ns()).step_id


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
