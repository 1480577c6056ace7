"""Two runs compared: figures, their steps side by side, and where they part."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial

import apsw

from hansard_compiler.diff import Delta, StepPair, align_steps, headline
from hansard_store.runs.queries import RunItem, get_run
from hansard_store.steps.queries import RunTree, TreeRow
from hansard_web.diff.step_facts import MOST_READ, StepsOf, Understanding, steps_of, what_differs
from hansard_web.diff.steps import StepDiff, compare_steps, run_figures

Trees = Callable[[apsw.Connection, str], RunTree]
# Where two runs part is shown at a step that says something by itself.
_DISTINCTIVE = ("compile", "llm", "embedding", "tool", "mcp", "retriever", "memory", "approval")


@dataclass(frozen=True, slots=True)
class AlignedStep:
    """A row of two trees laid side by side."""

    number: int
    pair: StepPair
    left: TreeRow | None
    right: TreeRow | None
    what: tuple[str, ...]  # in what they differ

    @property
    def state(self) -> str:
        return self.pair.state

    @property
    def row(self) -> TreeRow:
        """The right row where there is one: the later run's names are shown."""
        found = self.right or self.left
        assert found is not None
        return found


@dataclass(frozen=True, slots=True)
class RunDiff:
    """Two runs side by side."""

    left: RunItem
    right: RunItem
    figures: tuple[Delta, ...]
    steps: tuple[AlignedStep, ...]
    notes: tuple[str, ...]

    @property
    def counts(self) -> Mapping[str, int]:
        found = Counter(one.state for one in self.steps)
        return {name: found[name] for name in ("same", "changed", "only_left", "only_right")}

    @property
    def is_empty(self) -> bool:
        """Whether nothing differs but times."""
        return all(one.state == "same" for one in self.steps) and not any(
            one.is_difference for one in self.figures
        )

    @property
    def parted(self) -> AlignedStep | None:
        """The first step that is not the same; one that says something by itself, if there is."""
        differing = [one for one in self.steps if one.state != "same"]
        telling = (one for one in differing if one.row.step.role in _DISTINCTIVE)
        return next(telling, differing[0] if differing else None)

    @property
    def focus(self) -> AlignedStep | None:
        """The first call on both sides that differs, else compile, else other telling step."""
        for roles in (("llm", "embedding"), ("compile",), _DISTINCTIVE):
            for one in self.steps:
                if one.state == "changed" and one.row.step.role in roles:
                    return one
        return None


def compare_runs(
    connection: apsw.Connection, left_id: str, right_id: str, *, trees: Trees, now_ns: int
) -> RunDiff:
    """Compare two runs by id or unique prefix; raises NotFoundError or AmbiguousIdError.

    5,000 steps against 5,000 take about a second.
    """
    left = get_run(connection, left_id, now_ns=now_ns)
    right = get_run(connection, right_id, now_ns=now_ns)
    read = partial(steps_of, connection, understanding=Understanding(connection), now_ns=now_ns)
    one = read(trees(connection, left.run_id))
    other = one if left.run_id == right.run_id else read(trees(connection, right.run_id))
    return RunDiff(
        left,
        right,
        headline(run_figures(left), run_figures(right)),
        aligned(one, other),
        tuple(_notes(one, other)),
    )


def aligned(left: StepsOf, right: StepsOf) -> tuple[AlignedStep, ...]:
    """Lay the steps of two trees side by side."""
    rows = []
    for number, pair in enumerate(align_steps(left.marks, right.marks)):
        what: tuple[str, ...] = ()
        if pair.left is not None and pair.right is not None:
            what = what_differs(left.facts[pair.left], right.facts[pair.right])
            pair = replace(pair, state="changed" if what else "same")
        rows.append(
            AlignedStep(
                number,
                pair,
                None if pair.left is None else left.rows[pair.left],
                None if pair.right is None else right.rows[pair.right],
                what,
            )
        )
    return tuple(rows)


def compare_focus(
    connection: apsw.Connection, one: AlignedStep | None, *, now_ns: int
) -> StepDiff | None:
    """Compare the two steps of a row; None where there is only one."""
    if one is None or one.left is None or one.right is None:
        return None
    return compare_steps(connection, one.left.step.step_id, one.right.step.step_id, now_ns=now_ns)


def _notes(left: StepsOf, right: StepsOf) -> list[str]:
    return [
        f"{letter} has more than {MOST_READ:,} steps: of the rest only the summaries are compared"
        for letter, one in (("A", left), ("B", right))
        if one.is_cut
    ]
