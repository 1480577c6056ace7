"""What a replay would send, and what that would cost, before anything is sent or paid."""

from __future__ import annotations

import time
from typing import Annotated, Final, Literal, NotRequired

import apsw

from hansard_collector.derivation.cost import computed_cost
from hansard_compiler.calls import Json, Tokens
from hansard_compiler.diff.requests import request_diff
from hansard_compiler.errors import NotFoundError
from hansard_compiler.providers.adapter import ProviderCount
from hansard_compiler.redaction.redactor import Redactor
from hansard_compiler.replay.errors import NotReplayable
from hansard_compiler.replay.mutations import parse_mutations, plain_change
from hansard_store.bodies import Answer, Body, Description, body_of
from hansard_web.compile_view.labels import ItemNames
from hansard_web.diff.bodies import (
    CompileDelta,
    StepDiffBody,
    compile_diff_body,
    request_diff_body,
    step_diff_body,
)
from hansard_web.diff.steps import compare_steps, explained
from hansard_web.replay.recompile import Remade
from hansard_web.replay.request import Mode, ReplayInput
from hansard_web.replay.source import REQUEST_REF
from hansard_web.replay.transport.destinations import address_text, recorded_place
from hansard_web.replay.transport.turn import Basis, ReplayTurn

# What came out otherwise: the step a replay is of beside the step it made, or would make.

# Trying takes a compile each, a quarter of a millisecond an item.
_ITEMS_TRIED: Final = 6_000
_COMPILES: Final = (4, 32)  # at least, at most


def comparison_body(
    connection: apsw.Connection, left: str, right: str | None, *, now_ns: int
) -> StepDiffBody | None:
    """Return the comparison of two steps as `GET /v1/diff/steps` tells it; None without both."""
    if right is None:
        return None
    try:
        return step_diff_body(compare_steps(connection, left, right, now_ns=now_ns))
    except NotFoundError:
        return None


def remade_body(remade: Remade, redactor: Redactor) -> CompileDelta:
    """Return how a compile differs from the one it started from, with the cause of each flip."""
    left, right = remade.before, remade.after
    found = explained(left, right, redactor, items_tried=_ITEMS_TRIED, compiles=_COMPILES)
    return compile_diff_body(found, ItemNames(left.request, right.request))


_SCRIPTED: Final = "scripted"
_FORWARD: Final = "the later turns of the run follow as far as they can"


class ReplaySource(Body):
    run_id: str
    step_id: str


class Preview(Answer):
    """What would be sent; `refusal` says why it cannot be, `cost` is null for unknown prices."""

    preview: Literal[True]
    mode: Mode
    recorded: bool
    n: int
    source: ReplaySource
    provider: str
    model: str
    address: str
    recorded_address: Annotated[
        str | None, Description("of the recorded call, as far as it is known")
    ]
    is_exact: bool
    is_rebuilt: bool
    basis: Annotated[Basis, Description("what the request is made of")]
    sends: bool
    provider_side_effects: Annotated[
        list[Json], Description("tools that the provider runs itself, and state that it keeps")
    ]
    needs_approval: Annotated[bool, Description("it waits for an approval before it is sent")]
    refusal: Json | None
    mutations: list[Json]
    request: Json
    compile: NotRequired[Json | None]
    tokens: Json
    cost: Json | None
    notes: list[str]
    omitted: list[str]


def preview_body(turn: ReplayTurn, request: ReplayInput, redactor: Redactor) -> Preview:
    """Return a preview: the request, the compile beside the original's, tokens and cost."""
    estimate = turn.adapter.estimate(turn.render_input)
    source = turn.source.step
    effects = turn.side_effects
    is_allowed = request.allow_provider_side_effects
    return body_of(
        Preview,
        turn,
        preview=True,
        mode=request.kind,
        recorded=request.recorded,
        n=request.n,
        source={"run_id": source.run_id, "step_id": source.step_id},
        provider=turn.destination.provider,
        model=turn.render_input.model,
        address=f"{(turn.destination.base_url or '').rstrip('/')}{turn.destination.path}",
        recorded_address=_recorded_address(turn),
        sends=turn.sends and not turn.is_recorded and (is_allowed or not effects),
        provider_side_effects=[one.json() for one in effects],
        needs_approval=bool(effects) and is_allowed,
        refusal=None if turn.blocked is None else refusal_body(turn.blocked),
        mutations=[plain_change(one) for one in parse_mutations(request.mutations)],
        request=_request(turn),
        compile=None if turn.remade is None else remade_body(turn.remade, redactor),
        tokens={"estimated_input": estimate.tokens, "estimated_by": estimate.counted_by},
        cost=cost_body(turn, estimate, times=request.n),
        notes=[*turn.notes, *_ahead(turn, request)],
        omitted=[] if turn.is_exact else turn.form.notes(turn.render_input),
    )


def _recorded_address(turn: ReplayTurn) -> str | None:
    """Return where the recorded call went, as far as the record says."""
    if not turn.sends:
        return None
    address = recorded_place(turn.source).address
    return None if address is None else address_text(address)


def _ahead(turn: ReplayTurn, request: ReplayInput) -> list[str]:
    """Return what else is sent, and paid for where the first call is: the turns that follow."""
    if request.kind != "forward":
        return []
    follow = f"{_FORWARD}, and are paid for as well" if _is_paid(turn) else _FORWARD
    if not request.live:
        return [follow]
    most = f"up to {request.max_turns} live turns, for at most ${request.max_usd:g}"
    return [follow, f"past the first divergence the model is asked further: {most}"]


def refusal_body(why: NotReplayable) -> Json:
    """Return why something is not sent."""
    return {"reason": why.reason.value, "message": str(why), "details": why.facts}


def cost_body(turn: ReplayTurn, estimate: ProviderCount, *, times: int) -> Json | None:
    """Return an estimate in US dollars: input as estimated, output as long as the recorded one.

    None where the price list does not know the model; 0 where nothing is sent.
    """
    if not _is_paid(turn):
        return {"usd": 0.0, "each_usd": 0.0, "times": times, "output_tokens": 0, "source": None}
    call = turn.source.call
    message = call.tokens.output if call is not None else None
    output = message if message is not None else turn.render_input.sampling.max_output_tokens
    found = computed_cost(
        Tokens(input=estimate.tokens, output=output),
        provider=turn.destination.provider,
        model=turn.render_input.model,
        at_ns=time.time_ns(),
    )
    if found is None:
        return None
    return {
        "usd": round(found.usd * times, 12),
        "each_usd": found.usd,
        "times": times,
        "output_tokens": output,
        "source": found.source,
    }


def _is_paid(turn: ReplayTurn) -> bool:
    return turn.sends and not turn.is_recorded and turn.destination.family != _SCRIPTED


def _request(turn: ReplayTurn) -> Json:
    recorded = turn.source.attributes.get(REQUEST_REF)
    if not turn.request:  # a compile that no call used: nothing is rendered
        return {"hash": None, "size": 0, "recorded_hash": None, "same": False, "diff": None}
    return {
        "hash": turn.ref,
        "size": len(turn.request),
        "recorded_hash": recorded,
        "same": recorded == turn.ref,
        "diff": request_diff_body(request_diff(turn.recorded, turn.request)),
    }
