"""A run as a row of a list: what is computed so that the template only places it."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

import apsw

from hansard_store.error_groups.queries import first_errors
from hansard_store.replays import replay_that_made
from hansard_store.runs.groups import RunGroup
from hansard_store.runs.queries import RunItem
from hansard_web.annotations.labels import ScoreChip, score_chips
from hansard_web.replay import SERVICE as REPLAYS
from hansard_web.runs.columns import USUAL
from hansard_web.ui import format as figures

_SHORTEST_BAR_MS: Final = 100  # the bar's scale is logarithmic: 100 ms is empty, an hour is full
_LONGEST_BAR_MS: Final = 3_600_000
_LEAST_PCT: Final = 2.0
_BAR_OF: Final = {"error": "fg-error", "open": "fg-open", "no_end": "fg-wait", "blocked": "fg-wait"}
_MOST_SCORES: Final = 2  # that a row shows
_LONGEST_TITLE: Final = 300  # characters of first words in a row; CSS cuts them to its width


@dataclass(frozen=True, slots=True)
class RunRow:
    """One row; the same for a page, a fragment and a live message."""

    run: RunItem
    title: str  # the name of the run; its first prompt where that only repeats the agent
    words: str  # its first prompt, "" where there is none or where it is the title
    replay: str  # "exact replay", or only "replay" where more is not known; "" for no replay
    replay_of: str  # how the id of the run begins that it is of, where that is known
    model: str
    more_models: str  # the others, for the title
    bar: tuple[tuple[str, float, float], ...]
    cached_pct: int | None  # of the input; None where no call reported it
    length: str  # "7.82 s", "41.80 s …" while open, "≥ 15 m 02 s" without an end
    is_selected: bool
    scores: tuple[ScoreChip, ...]
    error: str  # type and message of the first error that counts; "" where none failed
    mark_sums: str  # all tags and scores, for the title; "" where there are none
    columns: tuple[str, ...]  # beside status and name
    group: RunGroup | None = None  # the row is all traces of one prompt; `run` is the whole of them
    of: str = ""  # group_id: the row is one of its traces, below its row


def run_rows(
    connection: apsw.Connection,
    runs: Iterable[RunItem],
    *,
    now_ns: int,
    selected: Collection[str] = (),
    columns: tuple[str, ...] = USUAL,
) -> tuple[RunRow, ...]:
    """Return the rows of runs as they are now; a replay says what it is a replay of."""
    found = list(runs)
    errors = first_errors(connection, [run.id for run in found if run.error_count])
    return tuple(
        _row(
            run,
            _replay(connection, run),
            errors,
            now_ns=now_ns,
            selected=selected,
            columns=columns,
        )
        for run in found
    )


def mixed_rows(
    connection: apsw.Connection,
    items: Iterable[RunItem | RunGroup],
    *,
    now_ns: int,
    selected: Collection[str] = (),
    columns: tuple[str, ...] = USUAL,
) -> tuple[RunRow, ...]:
    """Return the rows of a list in which the traces of one prompt are one."""
    found = list(items)
    runs = [item for item in found if not isinstance(item, RunGroup)]
    rows = iter(run_rows(connection, runs, now_ns=now_ns, selected=selected, columns=columns))
    return tuple(
        group_row(item, now_ns=now_ns, columns=columns)
        if isinstance(item, RunGroup)
        else next(rows)
        for item in found
    )


def group_row(group: RunGroup, *, now_ns: int, columns: tuple[str, ...] = USUAL) -> RunRow:
    """Return the row of all traces of a prompt: the prompt, and the last output."""
    row = _row(group.whole, ("", ""), {}, now_ns=now_ns, selected=(), columns=columns)
    output = " ".join((group.whole.last_output or "")[:_LONGEST_TITLE].split())
    return replace(row, title=row.words or row.title, words=output, group=group)


def member_rows(
    connection: apsw.Connection,
    group: RunGroup,
    *,
    now_ns: int,
    selected: Collection[str] = (),
    columns: tuple[str, ...] = USUAL,
) -> tuple[RunRow, ...]:
    """Return the rows of a group's traces, to stand below its own."""
    rows = run_rows(connection, group.members, now_ns=now_ns, selected=selected, columns=columns)
    return tuple(replace(row, of=group.group_id) for row in rows)


def _replay(connection: apsw.Connection, run: RunItem) -> tuple[str, str]:
    """Return what replay a run is, and of which run."""
    if REPLAYS not in run.service_names:
        return "", ""
    made = replay_that_made(connection, run.run_id)
    if made is None:
        return "replay", ""
    kind = "changed" if made.mode == "mutated" else made.mode
    return f"{kind} replay", made.source_run_id[:8]


def _row(
    run: RunItem,
    replay: tuple[str, str],
    errors: Mapping[int, str],
    *,
    now_ns: int,
    selected: Collection[str],
    columns: tuple[str, ...],
) -> RunRow:
    length_ns = run.duration_ns
    if length_ns is None:
        last_ns = now_ns if run.status == "open" else run.last_received_ns
        length_ns = max(last_ns - run.started_ns, 0)
    tokens = run.tokens
    cached_pct = None
    if tokens and tokens.input and tokens.cache_read is not None:
        cached_pct = min(round(100 * tokens.cache_read / tokens.input), 100)
    words = " ".join((run.first_input or "")[:_LONGEST_TITLE].split())
    scores = score_chips(run.marks)
    is_spoken = bool(words) and run.name == f"invoke_agent {run.agent_name}"
    return RunRow(
        run=run,
        title=words if is_spoken else figures.agent_words(run.name),
        words="" if is_spoken else words,
        replay=replay[0],
        replay_of=replay[1],
        model=run.models[0] if run.models else "",
        more_models=", ".join(run.models[1:]),
        bar=((_BAR_OF.get(run.status, "fg"), 0.0, _bar_pct(length_ns)),),
        cached_pct=cached_pct,
        length=_length(run, length_ns),
        is_selected=run.run_id in selected,
        scores=scores[:_MOST_SCORES],
        error=errors.get(run.id, ""),
        mark_sums=", ".join((*run.marks.tags, *(chip.title for chip in scores))),
        columns=columns,
    )


def _length(run: RunItem, length_ns: int) -> str:
    shown = figures.duration(length_ns)
    if run.status == "open":
        return f"{shown} …"
    return f"≥ {shown}" if run.status == "no_end" else shown


def _bar_pct(length_ns: int) -> float:
    length_ms = max(length_ns / 1_000_000, 1)
    share = math.log(length_ms / _SHORTEST_BAR_MS) / math.log(_LONGEST_BAR_MS / _SHORTEST_BAR_MS)
    return round(min(max(share * 100, _LEAST_PCT), 100), 1)
