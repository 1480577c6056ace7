"""Pass 10: place what went in into stable prefix, task context and volatile suffix."""

from __future__ import annotations

from hansard_compiler.layout import PLACED, sections
from hansard_compiler.state import State, Told


def run(state: State) -> State:
    """Lay out the live items; each is told its section."""
    laid_out = sections(state)
    told = {
        item_id: Told("include", PLACED[section.name])
        for section in laid_out
        for item_id in section.item_ids
    }
    usual = Told("include", PLACED[laid_out[1].name])
    return state.after("layout", usual, told, sections=laid_out)
