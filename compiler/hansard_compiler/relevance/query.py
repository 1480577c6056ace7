"""What relevance is measured against: the task, and what is asked now."""

from __future__ import annotations

from collections.abc import Mapping

from hansard_compiler.compile.passes.layout import latest_user_request
from hansard_compiler.compile.state import Guarded, State

_QUERY_KINDS = frozenset({"task"})


def query_of(state: State, guarded: Mapping[str, Guarded]) -> str:
    """Return what relevance is measured against, without secrets: a compressor is given it too."""
    latest = latest_user_request(state.live)
    asked = [
        guarded[item.id].text for item in state.live if item is latest or item.kind in _QUERY_KINDS
    ]
    task = state.ports.redactor.redact_text(state.request.task_summary).text
    return "\n".join([task, *asked])
