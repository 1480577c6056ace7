"""The request after an answer: the one before it, with the answer and the results of its calls.

It is built from the bytes that were sent, so that every field of the sender's own stays in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from hansard_compiler.calls import Json, Message, ToolResultPart
from hansard_compiler.providers.base import RenderInput, WireFormat
from hansard_compiler.providers.failures import NotRenderable

_TALK: Final = ("messages", "input")  # where the APIs keep what was said


def continued(
    form: WireFormat,
    rendered: Mapping[str, Any],
    response: Mapping[str, Any],
    results: Sequence[ToolResultPart],
) -> Json:
    """Return the body that goes on from an answered one; every call of the answer has a result.

    Raises NotRenderable for an API that holds no conversation.
    """
    said = form.continuation(response)
    model = str(rendered.get("model") or "")
    more = form.render(RenderInput(model=model, messages=(said, Message("tool", tuple(results)))))
    key = next((name for name in _TALK if name in rendered and name in more), None)
    if key is None:
        raise NotRenderable(f"a request to {form.path} holds no conversation to go on with")
    before = rendered[key]
    if isinstance(before, str):  # the Responses API takes a text for one message
        before = [{"type": "message", "role": "user", "content": before}]
    if not isinstance(before, list):
        raise NotRenderable(f"{key} of the request is no list")
    return {**rendered, key: [*before, *more[key]]}
