"""The acts of a replay: what each of them does, and why one of them cannot be done."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from hansard_compiler.errors import HansardError
from hansard_compiler.replay.errors import NotReplayable, Reason
from hansard_web.app.readers import Readers
from hansard_web.replay.engine import PLAN_MS, Replays
from hansard_web.replay.fork.forward import following
from hansard_web.replay.request import AskReplay
from hansard_web.replay.transport.turn import Turn
from hansard_web.replay_page.labels import Refusal, say_refusal
from hansard_web.replay_page.state import ReplayState
from hansard_web.ui.format import file_size, plural

_SCRIPTED: Final = "scripted"
_ENDS_HERE: Final = Refusal("no_later_call", "No later call of the run holds this answer")
READ_ONLY: Final = Refusal(
    "recording_disabled", "This process only shows what a collector stores; replay it there"
)


@dataclass(frozen=True, slots=True)
class Look:
    """What planning a call came to: a call that is ready, or why there is none."""

    turn: Turn | None
    refusal: Refusal | None
    needs_script: bool = False


@dataclass(frozen=True, slots=True)
class Act:
    """One kind of replay, as a card."""

    key: str
    label: str
    say: str
    icon: str
    truth: str  # what is true of it
    is_current: bool
    refusal: Refusal | None
    needs_script: bool = False


@dataclass(frozen=True, slots=True)
class Acts:
    """The four acts, and the call without changes, for the form."""

    all: tuple[Act, ...]
    base: Turn | None

    @property
    def current(self) -> Act | None:
        return next((act for act in self.all if act.is_current), None)


def look_at(replays: Replays, asked: AskReplay) -> Look:
    """Plan a call; what refuses it is told, and the script of a scripted model is not a refusal."""
    try:
        turn = replays.plan(asked)
    except NotReplayable as why:
        return Look(None, say_refusal(why))
    except HansardError as error:
        return Look(None, Refusal(error.code, str(error)))
    if turn.blocked is None or turn.blocked.reason is Reason.PROVIDER_SIDE_EFFECTS:
        return Look(turn, None)  # it can be allowed: the preview shows what, and offers it
    if turn.door.family == _SCRIPTED and turn.blocked.reason is Reason.PROVIDER_NOT_CONFIGURED:
        return Look(turn, None, needs_script=True)
    return Look(turn, say_refusal(turn.blocked))


def read_acts(replays: Replays, readers: Readers, state: ReplayState) -> Acts:
    """Find out which acts a step lets be done; where none was chosen, the first that it lets."""
    step, elsewhere = state.step_id, state.elsewhere
    exact = look_at(replays, AskReplay(step_id=step, mode="exact", allow_other_address=elsewhere))
    recorded = look_at(replays, AskReplay(step_id=step, mode="exact", recorded=True))
    # Offline: a provider that is not set up here can be changed for one that is.
    base = look_at(replays, AskReplay(step_id=step, mode="mutated", recorded=True))
    looks = {
        "exact": exact,
        "recorded": recorded,
        "mutated": base,
        "forward": _forward(readers, exact),
    }
    possible = [name for name, look in looks.items() if look.refusal is None]
    current = state.act or (possible[0] if possible else "exact")
    return Acts(tuple(_act(name, look, current) for name, look in looks.items()), base.turn)


def refused_acts(state: ReplayState, why: Refusal) -> Acts:
    """Return the acts where none of them can be done."""
    current = state.act or "exact"
    look = Look(None, why)
    return Acts(
        tuple(_act(name, look, current) for name in ("exact", "recorded", "mutated", "forward")),
        None,
    )


def _forward(readers: Readers, exact: Look) -> Look:
    if exact.turn is None or exact.refusal is not None:
        return exact
    with readers.read(timeout_ms=PLAN_MS) as connection:
        later = following(connection, exact.turn.source)
    return exact if later is not None else Look(None, _ENDS_HERE)


def _act(name: str, look: Look, current: str) -> Act:
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
    return Act(
        name, label, say, icon, _truth(name, look.turn), name == current, look.refusal,
        look.needs_script,
    )  # fmt: skip


def _truth(name: str, turn: Turn | None) -> str:
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
    return "Rebuilt from telemetry: the sender's own request may have had more in it."
