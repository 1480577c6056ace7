"""One model call that is ready to be made: the bytes, their destination, and its attributes."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import apsw

from hansard._context.compiled_step import CompiledStep, RecordedCompile
from hansard_collector.dialects.content.chat import request_messages
from hansard_collector.dialects.content.tool_lists import tools_of
from hansard_compiler.calls import Json
from hansard_compiler.providers.adapter import Adapter
from hansard_compiler.providers.base import RenderInput, Sampling, Wire, WireFormat
from hansard_compiler.providers.from_telemetry import rebuilt_from
from hansard_compiler.providers.transport.exchange import ProviderResponse, read_json
from hansard_compiler.replay.errors import NotReplayable, ReplayReason
from hansard_compiler.replay.provider_side_effects import SideEffect, provider_side_effects
from hansard_compiler.replay.request_edits import api_of
from hansard_store.compilations.queries import Compilation
from hansard_web.replay.recompile import Remade
from hansard_web.replay.request import ReplayInput
from hansard_web.replay.source import ReplayedStep, exact_request, recorded_answer
from hansard_web.replay.transport.destinations import (
    Destination,
    Reach,
    RecordedDestination,
    address_notes,
    destination_for,
    format_for,
    offline_destination,
    recorded_place,
    wire_through,
)
from hansard_web.replay.transport.wires import AssertingWire, NoWire, RecordedWire
from hansard_web.sidecar.compiles import RecalledStep

_SCRIPTED = "scripted"
_STATUS = "http.response.status_code"
# What a request was made of: the recorded bytes, those bytes edited, a compile made again, the
# request before it with an answer and results behind it, or what telemetry has of the call.
Basis = Literal["recorded", "edited", "compiled", "continued", "telemetry"]


@dataclass(frozen=True, slots=True)
class ReplayTurn:
    """A call to make. `blocked` says why it cannot be sent from here; a preview shows it."""

    source: ReplayedStep
    destination: Destination
    form: WireFormat
    wire: Wire
    request: bytes
    render_input: RenderInput  # the request as its span has it
    is_exact: bool  # the bytes are the recorded ones
    is_recorded: bool = False
    is_rebuilt: bool = False  # from telemetry, without a compile
    basis: Basis = "recorded"
    remade: Remade | None = None  # compiled again, with changes
    notes: tuple[str, ...] = ()
    recorded: bytes | None = None  # the original request, where its bytes are here
    blocked: NotReplayable | None = None
    sends: bool = True  # False: compiled and rendered, and that is all

    @property
    def ref(self) -> str:
        return f"sha256:{hashlib.sha256(self.request).hexdigest()}"

    @property
    def side_effects(self) -> list[SideEffect]:
        """What sending does at the provider besides answering; nothing where nothing is sent."""
        if (
            self.is_recorded
            or not self.sends
            or self.destination.family == _SCRIPTED
            or not self.request
        ):
            return []
        return provider_side_effects(self.request, self.destination.path)

    @property
    def adapter(self) -> Adapter:
        """The adapter that lets these bytes pass, and no others."""
        return Adapter(
            self.form, AssertingWire(self.wire, self.ref, self.form.path), preflight="off"
        )

    def ask(self, adapter: Adapter) -> ProviderResponse:
        """Send, and read the answer. Raises NotReplayable, RequestRefused or CallFailed."""
        answer = adapter.resend(self.request)
        estimate = adapter.estimate(self.render_input)
        fields = {
            "estimated_input_tokens": estimate.tokens,
            "estimated_by": estimate.counted_by,
            "omitted": [] if self.is_exact else self.form.notes(self.render_input),
        }
        return replace(answer, metadata=fields)


def exact_turn(
    connection: apsw.Connection, source: ReplayedStep, request: ReplayInput, reach: Reach
) -> ReplayTurn:
    """Return the recorded call as it was; raises NotReplayable where it cannot be that."""
    _, data = exact_request(connection, source)
    recorded = recorded_place(source)
    if request.recorded:
        destination = offline_destination(recorded)
        wire: Wire = _recording(connection, source, recorded, destination)
        blocked, notes = None, list[str]()
    else:
        destination = destination_for(recorded, reach)
        wire, blocked = wire_of(destination, recorded, reach)
        notes = address_notes(recorded, destination)
    return ReplayTurn(
        source=source,
        destination=destination,
        form=format_for(destination, recorded.format_settings),
        wire=wire,
        request=data,
        recorded=data,
        render_input=render_input_of(source, stream=recorded.is_stream),
        is_exact=True,
        is_recorded=request.recorded,
        notes=(*source.notes, *notes),
        blocked=blocked,
    )


def _recording(
    connection: apsw.Connection,
    source: ReplayedStep,
    recorded: RecordedDestination,
    destination: Destination,
) -> RecordedWire:
    status = source.attributes.get(_STATUS)
    return RecordedWire(
        destination.provider,
        recorded_answer(connection, source),
        status=status if isinstance(status, int) else 200,
        is_events=recorded.is_stream,
    )


def wire_of(
    destination: Destination, recorded: RecordedDestination, reach: Reach
) -> tuple[Wire, NotReplayable | None]:
    """Return what sends through a destination, or what does not and why."""
    try:
        return wire_through(destination, recorded.headers, reach), None
    except NotReplayable as why:
        return NoWire(), why


def given_in(request: bytes, path: str) -> RenderInput:
    """Return what a request says, read from its bytes: what the span of its call records."""
    body = read_json(request)
    messages = request_messages(body)
    head = next((at for at, one in enumerate(messages) if one.role != "system"), len(messages))
    api = api_of(path)
    sampling: Json = {}
    for name, paths in (api.sampling if api is not None else {}).items():
        found = [_inside(body, at) for at in paths]
        value = next((one for one in found if isinstance(one, int | float | str | list)), None)
        if value is not None and not isinstance(value, bool):
            sampling[name] = value
    if "stop" in sampling:
        stop = sampling["stop"]
        sampling["stop"] = tuple(map(str, stop if isinstance(stop, list) else [stop]))
    return RenderInput(
        model=str(body.get("model") or ""),
        system=tuple(one.text for one in messages[:head] if one.text),
        messages=messages[head:],
        tools=tools_of(body.get("tools")),
        sampling=Sampling(**sampling),
        stream=body.get("stream") is True,
    )


def _inside(value: Any, path: Sequence[str]) -> Any:
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def render_input_of(source: ReplayedStep, *, stream: bool) -> RenderInput:
    """Return a call's input as telemetry has it, for the span of its replay."""
    if source.call is None:
        raise NotReplayable(ReplayReason.KIND, "it is read as no model call")
    render_input = rebuilt_from(source.call).render_input(stream=stream)
    recipe = source.recipe
    return (
        render_input
        if render_input.model or recipe is None
        else replace(render_input, model=recipe.model)
    )


def compiled_of(turn: ReplayTurn) -> CompiledStep | None:
    """Return the compile a turn's call is of: its own, or that of the call it repeats."""
    if turn.remade is not None:
        return turn.remade.step
    found = turn.source.compilation
    if found is None or not turn.is_exact:
        return None
    return recalled(found)


def recalled(found: Compilation) -> CompiledStep:
    """Return a stored compile by its ids and hashes, as the span of a call names it."""
    row = found.row
    recorded = RecordedCompile(
        step_id=found.step_id,
        request_ref=row.request_ref or "",
        result_ref=row.result_ref or "",
        is_whole=True,
        ports=tuple(row.ports.split(",")) if row.ports else (),
    )
    return RecalledStep(found, {}, recorded)
