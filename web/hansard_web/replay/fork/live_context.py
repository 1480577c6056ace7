"""The context of live turns, compiled again: the compile before each with what was said since.

So a fork that goes on has receipts, and its context stays within the budget. It is done only where
the compile accounts for the whole of what was sent: compiled again as it was, it must render the
request in hand. Everything of a request that is no context stays as it was sent.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import apsw

from hansard_compiler.calls import Json, Message, ToolCallPart, ToolResultPart, message_json
from hansard_compiler.compile.engine import CompileResult
from hansard_compiler.compile.errors import CompileError, InvalidInput
from hansard_compiler.compile.inputs import context_item_data
from hansard_compiler.compile.models import CompilationRequest, ContextItem, parse
from hansard_compiler.diff.sides import CompileSide, side_of_result
from hansard_compiler.errors import ConfigError
from hansard_compiler.providers.adapter import request_bytes
from hansard_compiler.providers.base import RenderInput, from_payload
from hansard_compiler.providers.transport.exchange import read_json
from hansard_compiler.providers.transport.failures import RequestRefused
from hansard_compiler.replay.errors import NotReplayable, Reason
from hansard_compiler.replay.json_edit import JsonText, NotEditable
from hansard_web.replay.recompile import Recompiler, Remade, stored_request
from hansard_web.replay.transport.turn import Turn

# Where the APIs keep what a model knows; the rest of a request is how it is to answer.
_CONTEXT: Final = ("system", "instructions", "messages", "input", "tools")


@dataclass(frozen=True, slots=True)
class LiveContext:
    """What was compiled for the newest turn, and what compiles the next."""

    compiler: Recompiler
    request: CompilationRequest
    before: CompileSide

    def after(
        self, turn: Turn, said: Message, results: Sequence[ToolResultPart]
    ) -> tuple[Remade, RenderInput, bytes]:
        """Return the compile after an answered turn, what it renders, and the request's bytes.

        Raises NotReplayable where it cannot be compiled, or leaves out what was just said.
        """
        request = _with(self.request, said, results)
        result = self.compiler.compiled(request)
        given, data = _rendered(turn, result)
        if not _calls(said.parts) <= {one for m in given.messages for one in _calls(m.parts)}:
            raise NotReplayable(Reason.CONTEXT_EMPTY, "its newest turn does not fit the budget")
        checks = self.compiler.decider.checks if self.compiler.decider else []
        return Remade(result, self.compiler.given, checks, self.before), given, data

    def gone_on(self, remade: Remade) -> LiveContext:
        """Return it after another turn was compiled."""
        return replace(self, request=remade.result.request, before=remade.after)


def context_of(connection: apsw.Connection, turn: Turn, compiler: Recompiler) -> LiveContext | None:
    """Return what compiles the turns after one; None where its compile is not all that was sent."""
    try:
        request = (
            stored_request(connection, turn.source)
            if turn.remade is None
            else turn.remade.result.request
        )
        result = compiler.compiled(request)
        _, data = _rendered(turn, result)
    except NotReplayable:
        return None
    if data != turn.request:
        return None
    return LiveContext(compiler, request, side_of_result(result))


def _with(
    request: CompilationRequest, said: Message, results: Sequence[ToolResultPart]
) -> CompilationRequest:
    """Return the request with an answer and the results of its calls behind what was said."""
    seen = Counter(item.id.partition("#")[0] for item in request.context_items)
    told = [message_json(said), *(message_json(Message("tool", (one,))) for one in results)]
    try:
        data = [context_item_data(one, now=request.now, seen=seen) for one in told]
        items = [parse(ContextItem, one) for one in data]
    except (CompileError, InvalidInput) as error:
        raise NotReplayable(Reason.COMPILE_FAILED, str(error)) from None
    return request.model_copy(update={"context_items": [*request.context_items, *items]})


def _rendered(turn: Turn, result: CompileResult) -> tuple[RenderInput, bytes]:
    """Return what a compile gives a turn, and the turn's request with that context in it."""
    compiled = from_payload(result.payload, model=turn.given.model)
    given = replace(
        turn.given,
        messages=compiled.messages,
        system=compiled.system,
        tools=compiled.tools,
        boundary=compiled.boundary,
        stable_prefix_hash=compiled.stable_prefix_hash,
        volatile_suffix_hash=compiled.volatile_suffix_hash,
    )
    try:
        body = read_json(request_bytes(turn.form.render(given)))
        text = JsonText(turn.request)
    except (RequestRefused, ConfigError, NotEditable) as error:
        raise NotReplayable(Reason.NOT_RENDERABLE, str(error)) from None
    before: Json = read_json(turn.request)
    text.rewrite(None, {**_only(before, has_context=False), **_only(body, has_context=True)})
    return given, text.bytes()


def _only(body: Mapping[str, Any], *, has_context: bool) -> Json:
    return {name: one for name, one in body.items() if (name in _CONTEXT) is has_context}


def _calls(parts: Iterable[Any]) -> set[str | None]:
    return {part.id for part in parts if isinstance(part, ToolCallPart)}
