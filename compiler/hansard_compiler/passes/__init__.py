"""The twelve passes, in the order in which every compile runs them.

Each is `(state) -> state` and reports a decision for every item it saw. The order is part of what a
compile means: it is fixed here and nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable

from hansard_compiler.passes import (
    budget,
    compress,
    conflicts,
    dedupe,
    dependencies,
    layout,
    normalize,
    policy,
    record,
    render,
    score,
    validate,
)
from hansard_compiler.state import State

Pass = Callable[[State], State]

PASSES: tuple[tuple[str, Pass], ...] = (
    ("normalize", normalize.run),
    ("validate", validate.run),
    ("dedupe", dedupe.run),
    ("dependencies", dependencies.run),
    ("conflicts", conflicts.run),
    ("score", score.run),
    ("budget", budget.run),
    ("compress", compress.run),
    ("policy", policy.run),
    ("layout", layout.run),
    ("render", render.run),
    ("record", record.run),
)
