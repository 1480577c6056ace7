"""Pass 12: write the receipts. Storing them is the caller's, in one transaction."""

from __future__ import annotations

from hansard_compiler.compile.reasons import ReasonCode
from hansard_compiler.compile.receipts import originals, receipts_of
from hansard_compiler.compile.state import CompileState, Ruling


def run(state: CompileState) -> CompileState:
    """Make one receipt for every candidate, those long out included."""
    usual = Ruling("include", ReasonCode.RECORDED)
    contents = originals(state)
    return state.after("record", usual, receipts=receipts_of(state, contents), originals=contents)
