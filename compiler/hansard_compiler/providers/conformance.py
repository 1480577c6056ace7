"""What every wire format must hold to, as a check that any adapter's tests can run.

```python
assert conformance.breaches(MyFormat()) == []
```
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace

from hansard_compiler.calls import (
    Json,
    Message,
    ReasoningPart,
    TextPart,
    Tokens,
    ToolCallPart,
    ToolResultPart,
)
from hansard_compiler.providers.adapter import request_bytes
from hansard_compiler.providers.base import Boundary, RenderInput, WireFormat
from hansard_compiler.providers.formats.fields import provider_block

_TOOL: Json = {
    "type": "function",
    "name": "look_up",
    "description": "Looks something up.",
    "parameters": {"type": "object", "properties": {"key": {"type": "string"}}},
}
_PROMPT = Message("user", (TextPart("What does the almanac say?"),))
_CALLED = Message("assistant", (ToolCallPart("call-1", "look_up", {"key": "almanac"}),))
_RESULT = Message("tool", (ToolResultPart("call-1", "fair winds"),))
_SOUND = RenderInput(
    model="model-1",
    system=("Answer from the almanac.",),
    messages=(_PROMPT, _CALLED, _RESULT, Message("user", (TextPart("And tomorrow?"),))),
    tools=(_TOOL,),
    boundary=Boundary(system=1, tools=1),
)


def breaches(format: WireFormat) -> list[str]:
    """Return a sentence for each promise a format breaks; nothing when it keeps them all."""
    found: list[str] = []
    for promise, check in PROMISES.items():
        try:
            is_met = check(format)
        except Exception as error:  # whatever it raises, the promise is broken by it
            found.append(f"{promise}: raised {type(error).__name__}: {error}")
            continue
        if not is_met:
            found.append(promise)
    return found


def _repeats(format: WireFormat) -> bool:
    return request_bytes(format.render(_SOUND)) == request_bytes(format.render(_SOUND))


def _says_everything(format: WireFormat) -> bool:
    sent = request_bytes(format.render(_SOUND)).decode()
    text = ("Answer from the almanac.", "What does the almanac say?", "fair winds", "And tomorrow?")
    return all(one in sent for one in (*text, "look_up", "Looks something up.", "model-1"))


def _leaves_input_alone(format: WireFormat) -> bool:
    tools = copy.deepcopy(_SOUND.tools)
    format.render(_SOUND)
    return tools == _SOUND.tools


def _passes_built_in_tools(format: WireFormat) -> bool:
    built_in: Json = {"type": "a_tool_nobody_knows", "setting": {"deep": [1, 2]}}
    rendered = format.render(replace(_SOUND, tools=(built_in,)))
    return built_in in list(rendered.get("tools", ()))


def _accepts_sound_pairs(format: WireFormat) -> bool:
    return format.problems(format.render(_SOUND)) == []


def _finds_broken_pairs(format: WireFormat) -> bool:
    without_call = replace(_SOUND, messages=(_PROMPT, _RESULT))
    without_result = replace(_SOUND, messages=(_PROMPT, _CALLED))
    return all(format.problems(format.render(one)) for one in (without_call, without_result))


def _keeps_foreign_blocks_out(format: WireFormat) -> bool:
    block = provider_block("a provider nobody knows", {"type": "signed", "signature": "f0re1gn"})
    spoken = Message("assistant", (block, TextPart("Fair.")))
    request = replace(_SOUND, messages=(_PROMPT, spoken, *_SOUND.messages[:1]))
    is_sent = b"f0re1gn" in request_bytes(format.render(request))
    return bool(format.notes(request)) or is_sent


def _notes_what_it_leaves_out(format: WireFormat) -> bool:
    spoken = Message("assistant", (ReasoningPart("because-of-the-moon"), TextPart("Fair.")))
    request = replace(_SOUND, messages=(_PROMPT, spoken, _PROMPT))
    is_sent = b"because-of-the-moon" in request_bytes(format.render(request))
    return bool(format.notes(request)) is not is_sent


def _knows_what_it_does_not_know(format: WireFormat) -> bool:
    call = format.parse({}, {})
    return call.tokens == Tokens() and call.finish_reason is None and call.output == ()


def _needs_a_streams_end(format: WireFormat) -> bool:
    return format.join_stream([]) is None


def _streams_on_request(format: WireFormat) -> bool:
    streamed = format.render(replace(_SOUND, stream=True))
    return streamed.get("stream") is True and "stream" not in format.render(_SOUND)


PROMISES: dict[str, Callable[[WireFormat], bool]] = {
    "the same input gives the same bytes": _repeats,
    "texts, tools and the model all reach the request": _says_everything,
    "the input is not changed": _leaves_input_alone,
    "built-in tools pass through unchanged": _passes_built_in_tools,
    "sound pairs of calls and results have no problems": _accepts_sound_pairs,
    "a call without its result, or a result without its call, is found": _finds_broken_pairs,
    "blocks of other providers are sent as content or listed as omitted": _keeps_foreign_blocks_out,
    "reasoning is sent or listed as omitted": _notes_what_it_leaves_out,
    "what a response does not say is unknown, not zero": _knows_what_it_does_not_know,
    "a stream without its end is no answer": _needs_a_streams_end,
    "`stream` is set when asked for, and only then": _streams_on_request,
}
