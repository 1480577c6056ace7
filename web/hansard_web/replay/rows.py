"""The row of a replay as it begins, and the changes as its report keeps them."""

from __future__ import annotations

from hansard_compiler.calls import Json
from hansard_compiler.replay.errors import NotReplayable
from hansard_compiler.replay.mutations import parse_mutations, recipe_of
from hansard_store.replays import ReplayRow
from hansard_web.replay.request import AskReplay


def new_row(
    replay_id: str, asked: AskReplay, run_id: str, step_id: str, now_ns: int, *, holder: str = ""
) -> ReplayRow:
    """Return the row of a replay that begins now."""
    return ReplayRow(
        replay_id=replay_id,
        source_run_id=run_id,
        source_step_id=step_id,
        run_id=None,
        mode=asked.kind,
        is_recorded=asked.recorded,
        repeats=asked.n,
        state="running",
        reason=None,
        request_hash=None,
        steps=[],
        started_ns=now_ns,
        ended_ns=None,
        holder=holder,
        report=None,
    )


def recipe_in(row: ReplayRow, asked: AskReplay, *, strict: bool) -> Json:
    """Return the changes as they are stored; of a refusal, as far as they could be read."""
    try:
        mutations = parse_mutations(asked.mutations)
    except NotReplayable:
        if strict:
            raise
        mutations = []
    made = recipe_of(row.replay_id, row.source_run_id, row.source_step_id, mutations, asked.notes)
    return {"recipe": made.model_dump(mode="json")}
