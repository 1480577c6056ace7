"""Pass 11: make the request, provider-neutral or by the renderer of the ports."""

from __future__ import annotations

from hansard_compiler.compile.passes.layout import payload
from hansard_compiler.compile.reasons import ReasonCode
from hansard_compiler.compile.state import CompileState, Ruling


def run(state: CompileState) -> CompileState:
    """Render what was laid out."""
    made = payload(state.sections)
    renderer = state.ports.renderer
    if renderer is not None:
        made = renderer(made)
    return state.after("render", Ruling("include", ReasonCode.RENDERED), payload=made)
