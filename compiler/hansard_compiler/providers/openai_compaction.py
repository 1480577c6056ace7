"""OpenAI's own compaction of long conversations (`POST /responses/compact`).

Apart from everything else on purpose: what comes back is opaque, so that it can be neither read,
diffed nor budgeted anew. The compiler never uses it; who wants it calls it and sends its output on
as provider blocks, unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hansard_compiler.calls import Json, Message
from hansard_compiler.providers.base import RenderInput, provider_block
from hansard_compiler.providers.openai_responses import PROVIDER, OpenAIResponses

PATH = "/responses/compact"
_KEPT = ("model", "input", "instructions", "previous_response_id", "prompt_cache_key")


def render_compaction(given: RenderInput) -> Json:
    """Return the body that asks for a conversation to be compacted."""
    rendered = OpenAIResponses().render(given)
    return {key: rendered[key] for key in _KEPT if key in rendered}


def read_compaction(response: Mapping[str, Any]) -> tuple[Message, ...]:
    """Return what stands for the conversation from now on; every item is kept as it came."""
    items = response.get("output") or ()
    return tuple(Message("user", (provider_block(PROVIDER, dict(item)),)) for item in items)
