"""The calls before and after a step in its run: step N against step N + 1."""

from __future__ import annotations

from dataclasses import dataclass

import apsw

from hansard_store.content.messages import CallRow, list_calls
from hansard_store.steps.flags import SpanFlag
from hansard_store.steps.queries import StepSkeleton


@dataclass(frozen=True, slots=True)
class Neighbours:
    """The calls of a run that are of a step's kind, in order, and where the step stands in them."""

    calls: tuple[CallRow, ...]
    place: int | None  # None: the step is none of them

    @property
    def before(self) -> CallRow | None:
        return self.calls[self.place - 1] if self.place else None

    @property
    def after(self) -> CallRow | None:
        if self.place is None or self.place + 1 >= len(self.calls):
            return None
        return self.calls[self.place + 1]


def neighbours_of(connection: apsw.Connection, step: StepSkeleton, *, run: int) -> Neighbours:
    """Return the calls around a step; those that another step reports as well are left out."""
    calls = tuple(
        one
        for one in list_calls(connection, run)
        if one.span == step.id or (one.role == step.role and not one.flags & SpanFlag.DUPLICATE)
    )
    return Neighbours(
        calls, next((at for at, one in enumerate(calls) if one.span == step.id), None)
    )
