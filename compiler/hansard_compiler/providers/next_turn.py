"""The request after a response: the one before it, with the response and the results of its calls.

The bytes that were sent are edited, so that every field of the sender's own stays as it was
written.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from hansard_compiler.calls import Json, Message, ToolResultPart
from hansard_compiler.providers.base import RenderInput, WireFormat
from hansard_compiler.providers.transport.failures import NotRenderable
from hansard_compiler.replay.json_edit import (
    Array,
    JsonText,
    NotEditable,
    Scalar,
    find,
    value_of,
)

_CONVERSATION: Final = ("messages", "input")  # where the APIs keep what was said


def continued(
    form: WireFormat, request: bytes, response: Json, results: Sequence[ToolResultPart]
) -> bytes:
    """Return the request that continues a completed one; every call of it has a result.

    Raises NotRenderable for an API that holds no conversation.
    """
    try:
        text = JsonText(request)
    except NotEditable as error:
        raise NotRenderable(f"the request cannot be gone on from: {error}") from None
    spoken = form.continuation(response)
    member = find(text.root, "model")
    model = "" if member is None else str(value_of(member.value) or "")
    more = form.render(RenderInput(model=model, messages=(spoken, Message("tool", tuple(results)))))
    key = next((one for one in _CONVERSATION if one in more and find(text.root, one)), None)
    if key is None:
        raise NotRenderable(f"a request to {form.path} holds no conversation to go on with")
    entries = _entries(text, key)
    for one in more[key]:
        text.insert(entries, len(entries.elements), text.node(one))
    return text.bytes()


def _entries(text: JsonText, key: str) -> Array:
    """Return the array of the conversation; a text in its place becomes its first message."""
    member = find(text.root, key)
    assert member is not None
    if isinstance(member.value, Array):
        return member.value
    if not isinstance(member.value, Scalar) or not isinstance(value_of(member.value), str):
        raise NotRenderable(f"{key} of the request is no list")
    return text.into_list(member, {"type": "message", "role": "user", "content": ""})
