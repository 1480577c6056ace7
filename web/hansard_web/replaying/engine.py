"""Replays of one store: planned, recorded, made, each in a thread of its own.

`Replays.start` is where the API, the command line, the SDK and the page come together. Planning
reads the store and refuses; only then is a row written, and only then is anything sent.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from hansard_compiler.calls import Json
from hansard_compiler.policy import Policy
from hansard_compiler.replay.live import Live, RecordedResult
from hansard_compiler.replay.refusals import NotReplayable, Reason
from hansard_compiler.replay.turns import Divergence
from hansard_compiler.retention import RetentionMode
from hansard_store.replays import (
    ReplayRow,
    State,
    add_replay,
    change_replay,
    claim_replay,
    get_replay,
    interrupt_replay,
    running_replays,
)
from hansard_store.step_queries import get_step
from hansard_store.stored_json import json_of
from hansard_web.api.values import Body, dump
from hansard_web.readers import Readers
from hansard_web.replaying.asked import AskReplay, GoOn
from hansard_web.replaying.changed import Making, changed_turn, compile_turn
from hansard_web.replaying.failing import error_body, reason_of
from hansard_web.replaying.forward import MOST_TURNS, Fork, parting_body, recorded_results
from hansard_web.replaying.holding import Holder, is_held
from hansard_web.replaying.live import LiveFork, Standing, ask_again
from hansard_web.replaying.live_context import LiveContext, context_of
from hansard_web.replaying.places import Reach
from hansard_web.replaying.preview import preview_body
from hansard_web.replaying.recompile import Recompiler
from hansard_web.replaying.resuming import Resumed, resumed
from hansard_web.replaying.rows import new_row, recipe_in
from hansard_web.replaying.source import Source, read_source
from hansard_web.replaying.telling import ReplayRun, compile_json
from hansard_web.replaying.turn import Turn, exact_turn
from hansard_web.sidecar.errors import TooManyCalls
from hansard_web.sidecar.recording import Outlet

MOST_AT_ONCE: Final = 8
_log = logging.getLogger("hansard.replays")
PLAN_MS: Final = 30_000


@dataclass(slots=True)
class _Work:
    """A replay that is being made."""

    row: ReplayRow
    report: Json
    ended: threading.Event = field(default_factory=threading.Event)

    def add(self, step: Json, shortfall: BaseException | None = None) -> None:
        """Note one more step that was made."""
        self.row = self.row._replace(steps=[*self.row.steps, step])
        if shortfall is not None:
            self.report["notes"] = [*self.report["notes"], str(shortfall)]


@dataclass(frozen=True, slots=True)
class _Ending:
    """How a replay ended, or what it waits for."""

    state: State
    reason: Reason | None = None


class Replays:
    """What makes replays: one for an app or a command. The lock guards what is made."""

    def __init__(
        self,
        readers: Readers,
        outlet: Outlet,
        *,
        model_server: str | None = None,
        script: Json | None = None,
        policy: Callable[[], Policy | None] = lambda: None,
    ) -> None:
        self._readers = readers
        self._outlet = outlet
        self._model_server = model_server
        self._script = script
        self._policy = policy
        self._lock = threading.Lock()
        self._works: dict[str, _Work] = {}
        self._holder = Holder(outlet.folder)
        self._settle()

    # ---- asked

    def plan(self, asked: AskReplay) -> Turn:
        """Return the first call of a replay, ready to be sent. Nothing is written.

        Raises NotReplayable, and NotFoundError or AmbiguousIdError for the step.
        """
        making = Making(self._reach(asked), self._outlet.redactor, self._policy())
        with self._readers.read(timeout_ms=PLAN_MS) as connection:
            source = read_source(connection, asked.step_id, now_ns=time.time_ns())
            if asked.kind == "forward" and asked.n > 1:
                detail = "a fork goes one way: n is for one call asked several times"
                raise NotReplayable(Reason.MUTATION_INVALID, detail)
            if source.is_compile:
                return compile_turn(connection, source, asked, making)
            if asked.kind == "mutated" or asked.mutations:
                if asked.kind == "exact":
                    detail = "an exact replay changes nothing: leave out the changes, or the mode"
                    raise NotReplayable(Reason.MUTATION_INVALID, detail)
                return changed_turn(connection, source, asked, making)
            return exact_turn(connection, source, asked, making.reach)

    def preview(self, asked: AskReplay) -> Body:
        """Return what a replay would send, without sending it; raises as `plan`."""
        return preview_body(self.plan(asked), asked, self._outlet.redactor)

    def start(self, asked: AskReplay) -> ReplayRow:
        """Begin a replay and return its row. A refusal is recorded too, and then raised.

        Raises as `plan`, and TooManyCalls when as many as may be are at work.
        """
        replay_id = os.urandom(16).hex()
        self._refuse_more()
        try:
            turn = self.plan(asked)
            if turn.blocked is not None:
                raise turn.blocked
        except NotReplayable as why:
            why.replay_id = self._refused(replay_id, asked, why)
            raise
        return self._begin(replay_id, asked, turn)

    def go_on(self, wanted: str, asked: GoOn, *, by: str) -> ReplayRow:
        """Have a fork that stopped go on live, and return its row.

        Raises NotReplayable (then nothing has changed), NotFoundError, AmbiguousIdError, and
        TooManyCalls.
        """
        self._refuse_more()
        with self._readers.read(timeout_ms=PLAN_MS) as connection:
            found = resumed(
                connection, wanted, asked, by=by, outlet=self._outlet, reach=self._reach(asked)
            )
        report = {**(found.row.report or {}), "live": found.live.json()}
        report.pop("error", None)
        holder = self._hold()
        claimed = claim_replay(
            self._outlet.folder, found.row, holder=holder, report=self._kept(report) or {}
        )
        if not claimed:
            raise NotReplayable(Reason.NOT_WAITING, "somebody else goes on with it")
        row = found.row._replace(state="running", reason=None, ended_ns=None, holder=holder)
        self._run(_Work(row, report), found.run, partial(self._resume, found))
        return row

    def wait(self, replay_id: str, *, seconds: float) -> None:
        """Wait until a replay of this process has ended; at once for every other."""
        with self._lock:
            work = self._works.get(replay_id)
        if work is not None:
            work.ended.wait(seconds)

    def row(self, wanted: str) -> ReplayRow:
        """Return a replay as it stands; raises NotFoundError or AmbiguousIdError."""
        with self._readers.read() as connection:
            return get_replay(connection, wanted)

    def close(self) -> None:
        """Tell of what is still being made that this process does not wait for it."""
        with self._lock:
            works = list(self._works)
        for replay_id in works:
            interrupt_replay(self._outlet.folder, replay_id, now_ns=time.time_ns())
        with self._lock:
            self._holder.release()

    # ---- rows

    def _hold(self) -> str:
        with self._lock:
            return self._holder.hold()

    def _refuse_more(self) -> None:
        with self._lock:
            if len(self._works) >= MOST_AT_ONCE:
                raise TooManyCalls(MOST_AT_ONCE)

    def _reach(self, asked: AskReplay | GoOn) -> Reach:
        return Reach(
            model_server=self._model_server,
            timeout_s=asked.timeout_s,
            max_retries=asked.max_retries,
            script=self._script if asked.script is None else asked.script,
            elsewhere=asked.elsewhere,
        )

    def _settle(self) -> None:
        """Tell of replays whose maker is gone that they came to nothing."""
        with self._readers.read() as connection:
            left = running_replays(connection)
        for replay_id, holder in left:
            if not is_held(self._outlet.folder, holder):
                interrupt_replay(self._outlet.folder, replay_id, now_ns=time.time_ns())

    def _refused(self, replay_id: str, asked: AskReplay, why: NotReplayable) -> str | None:
        with self._readers.read() as connection:
            step = get_step(connection, asked.step_id, now_ns=time.time_ns())
        now_ns = time.time_ns()
        row = new_row(replay_id, asked, step.run_id, step.step_id, now_ns)
        report = {"notes": [], "error": error_body(why), **recipe_in(row, asked, strict=False)}
        self._add(row._replace(state="refused", reason=why.reason.value, ended_ns=now_ns), report)
        return replay_id

    def _begin(self, replay_id: str, asked: AskReplay, turn: Turn) -> ReplayRow:
        step = turn.source.step
        row = new_row(
            replay_id, asked, step.run_id, step.step_id, time.time_ns(), holder=self._hold()
        )
        # metadata_only keeps no digests either; a compile that no call used has no request.
        if turn.request and self._outlet.mode is not RetentionMode.METADATA_ONLY:
            row = row._replace(request_hash=turn.ref)
        report = {"notes": list(turn.notes), **recipe_in(row, asked, strict=True)}
        run = ReplayRun(
            self._outlet, replay_id, turn.source, mode=row.mode, is_recorded=asked.recorded
        )
        row = row._replace(run_id=run.trace_id)
        self._add(row, report)
        self._run(_Work(row, report), run, lambda work: self._ask(work, asked, turn, run))
        return row

    def _run(self, work: _Work, run: ReplayRun, make: Callable[[_Work], _Ending]) -> None:
        """Have a replay made in a thread of its own."""
        with self._lock:
            self._works[work.row.replay_id] = work
        threading.Thread(
            target=self._make, args=(work, run, make), name="hansard-replay", daemon=True
        ).start()

    def _add(self, row: ReplayRow, report: Json) -> None:
        add_replay(self._outlet.folder, row._replace(report=self._kept(report)))

    def _kept(self, report: Json) -> Json | None:
        """Return a report without secrets; None where no content may be kept."""
        if self._outlet.mode is RetentionMode.METADATA_ONLY:
            return None
        if self._outlet.mode is RetentionMode.FULL_PAYLOADS:
            return report
        data = self._outlet.redactor.redact_bytes(dump(report), "application/json").data
        cleaned: Json = json_of(data.decode())
        return cleaned

    # ---- made

    def _make(self, work: _Work, run: ReplayRun, make: Callable[[_Work], _Ending]) -> None:
        """Make a replay, and tell how it ended whatever happens."""
        error: BaseException | None = None
        try:
            ending = make(work)
        except Exception as wrong:  # the thread's last resort: told in the row
            error = wrong
            ending = _Ending("failed", reason_of(wrong))
            work.report["error"] = error_body(wrong)
        try:
            self._tell_end(work, run, ending, error)
        except Exception as trouble:  # the store is gone: the next start says it was interrupted
            _log.warning("the end of replay %s was not kept: %s", work.row.replay_id, trouble)
        finally:
            with self._lock:
                self._works.pop(work.row.replay_id, None)
            work.ended.set()

    def _tell_end(
        self, work: _Work, run: ReplayRun, ending: _Ending, error: BaseException | None
    ) -> None:
        row = work.row._replace(
            state=ending.state,
            reason=None if ending.reason is None else ending.reason.value,
            report=self._kept(work.report),
        )
        try:
            run.end(error)
        finally:
            change_replay(self._outlet.folder, row._replace(ended_ns=time.time_ns()))

    def _ask(self, work: _Work, asked: AskReplay, turn: Turn, run: ReplayRun) -> _Ending:
        """Make the calls of a replay, and return how it ended."""
        turn = run.compile(turn)
        if not turn.sends:
            work.add(self._numbers(compile_json(turn)))
            return _Ending("done")
        if asked.kind == "forward":
            return self._go_on(work, asked, turn, run)
        for _ in range(asked.n):
            said = run.ask(turn)
            work.add(self._numbers(said.json(turn)), said.answer.shortfall)
        return _Ending("done")

    def _numbers(self, step: Json) -> Json:
        """Return what the row keeps of a step, without digests where none are kept."""
        if self._outlet.mode is not RetentionMode.METADATA_ONLY:
            return step
        return {**step, "request_hash": None, "compile_hash": None}

    def _go_on(self, work: _Work, asked: AskReplay, turn: Turn, run: ReplayRun) -> _Ending:
        """Make one turn after the other until the first answer that cannot be followed."""
        fork = Fork(asked, Making(self._reach(asked), self._outlet.redactor, self._policy()))
        for number in range(1, MOST_TURNS + 1):
            said = run.ask(turn)
            work.add(self._numbers(said.json(turn)), said.answer.shortfall)
            pool: list[RecordedResult] = []
            with self._readers.read(timeout_ms=PLAN_MS) as connection:
                following = fork.after(connection, turn, said)
                if isinstance(following, Divergence):
                    pool = recorded_results(connection, turn.source)
            if isinstance(following, Divergence):
                work.report |= parting_body(following, turn, said, number=number, pool=pool)
                if not asked.live:
                    return _Ending("diverged")
                live = Live(turns_left=asked.max_turns, usd_left=asked.max_usd)
                at = Standing(turn, said.answer, said.step_id, number)
                return self._go_live(work, run, turn.source, pool, live, at)
            if following is None:
                return _Ending("done")
            if following.blocked is not None:
                raise following.blocked
            turn = run.compile(following)
        work.report["notes"] = [*work.report["notes"], f"stopped after {MOST_TURNS} turns"]
        return _Ending("done")

    # ---- live

    def _resume(self, found: Resumed, work: _Work) -> _Ending:
        return self._go_live(work, found.run, found.source, found.pool, found.live, found.at)

    def _go_live(
        self,
        work: _Work,
        run: ReplayRun,
        source: Source,
        pool: Sequence[RecordedResult],
        live: Live,
        at: Standing,
    ) -> _Ending:
        """Go on past a divergence until nothing is asked for any more, or something is missing."""

        def note(live: Live, step: Json | None, shortfall: BaseException | None) -> None:
            work.report["live"] = live.json()
            if step is not None:
                work.add(self._numbers(step), shortfall)
            # As it stands, should the next call fail.
            work.report["ask"] = ask_again(work.report["ask"], live, work.row.steps)

        def say(told: str) -> None:
            work.report["notes"] = list(dict.fromkeys([*work.report["notes"], told]))

        fork = LiveFork(
            live, source=source, pool=pool, run=run, note=note,
            context=self._live_context(source, at), say=say,
        )  # fmt: skip
        stop = fork.go(at)
        work.report |= {"live": stop.live.json(), "ask": stop.ask}
        for model in stop.live.unpriced:
            say(f"the price of {model} is unknown: only the number of turns bounds live calls")
        return _Ending("done") if stop.reason is None else _Ending("waiting", stop.reason)

    def _live_context(self, source: Source, at: Standing) -> LiveContext | None:
        """Return what compiles live turns; None where the source was not compiled."""
        if source.compilation is None or at.turn.source.compilation is None:
            return None
        compiler = Recompiler(source.compilation, self._outlet.redactor, self._policy())
        with self._readers.read(timeout_ms=PLAN_MS) as connection:
            return context_of(connection, at.turn, compiler)
