"""Pass 1: make one kind of candidate of every input."""

from __future__ import annotations

from hansard_compiler.compile.items import from_context_item, from_memory, from_tool
from hansard_compiler.compile.reasons import ReasonCode
from hansard_compiler.compile.state import CompileState, Ruling


def run(state: CompileState) -> CompileState:
    """Take over context items, then memories, then tool definitions."""
    request = state.request
    items = [from_context_item(one, at) for at, one in enumerate(request.context_items)]
    for record in request.memory_records:
        items.append(from_memory(record, position=len(items), now_us=state.now_us))
    for spec in request.tool_specs:
        items.append(from_tool(spec, position=len(items)))
    rulings = {
        item.id: Ruling("include", ReasonCode.NORMALIZED, note=f"given as {shape}")
        for item in items
        if (shape := item.metadata.get("coerced_from"))
    }
    usual = Ruling("include", ReasonCode.NORMALIZED)
    return state.after("normalize", usual, rulings, items=tuple(items), live=tuple(items))
