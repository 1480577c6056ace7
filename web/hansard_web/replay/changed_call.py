"""A call with changes: its recorded request edited, compiled again where there is a compile, or
rebuilt from telemetry where no bytes were recorded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Final

import apsw

from hansard_compiler.calls import Json
from hansard_compiler.compile.engine import CompileResult
from hansard_compiler.errors import ConfigError
from hansard_compiler.policy.engine import Policy
from hansard_compiler.providers.adapter import request_bytes
from hansard_compiler.providers.base import RenderInput, Sampling, WireFormat, from_payload
from hansard_compiler.providers.from_telemetry import (
    Rebuilt,
    mutate_messages,
    rebuilt_from,
    resampled,
    sampling_from,
)
from hansard_compiler.providers.transport.exchange import read_json
from hansard_compiler.providers.transport.failures import RequestRefused
from hansard_compiler.redaction.redactor import Redactor
from hansard_compiler.replay import mutations as change
from hansard_compiler.replay.errors import NotReplayable, ReplayReason
from hansard_compiler.replay.json_edit import JsonText, NotEditable
from hansard_compiler.replay.request_edits import api_of, edit_request, with_words
from hansard_compiler.replay.request_fields import added_fields, lost_paths, unknown_note
from hansard_compiler.replay.turns import calls_in, text_of, with_answer
from hansard_web.replay.recompile import Past, Remade, remake
from hansard_web.replay.request import ReplayInput
from hansard_web.replay.source import ReplayedStep, exact_request, is_withheld
from hansard_web.replay.transport.destinations import (
    Destination,
    Reach,
    RecordedDestination,
    address_notes,
    destination_for,
    destination_of,
    format_for,
    offline_destination,
    recorded_place,
    unnamed_destination,
)
from hansard_web.replay.transport.turn import Basis, ReplayTurn, given_in, wire_of
from hansard_web.replay.transport.wires import NoWire, PlainAnswers

# Of the provider's own: another one has no form for them.
_OWN: Final = ("reasoning", "extra", "previous_response_id", "held_messages")
_RENDERED: Final = frozenset(one.name for one in fields(RenderInput)) - {
    "model", "messages", "system", "tools", "boundary", "stable_prefix_hash",
    "volatile_suffix_hash", "sampling", "stream",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Making:
    """What a changed call is made with."""

    reach: Reach
    redactor: Redactor
    policy: Policy | None


def changed_turn(
    connection: apsw.Connection,
    source: ReplayedStep,
    request: ReplayInput,
    making: Making,
    *,
    past: Past | None = None,
) -> ReplayTurn:
    """Return a call with its changes, rendered. Raises NotReplayable.

    With `recorded` nothing can be answered: the recording holds the answer to another request. It
    is compiled and rendered, and that is all.
    """
    mutations = change_list(request)
    endpoint = recorded_place(source)
    provider = _provider(mutations, endpoint)
    destination, notes = _destination(
        endpoint, provider, making.reach, is_recorded=request.recorded
    )
    remade = _remade(connection, source, mutations, making, past)
    recorded = _recorded(connection, source)
    is_edited = remade is None and provider is None and recorded is not None
    form = format_for(destination, {} if provider is not None else endpoint.format_settings)
    made = (
        _edited(source, form, recorded, mutations, past)
        if is_edited and recorded is not None and destination.family != "scripted"
        else _made_anew(source, endpoint, form, mutations, remade, recorded, past, provider)
    )
    if provider is not None:
        endpoint = replace(endpoint, headers={}, format_settings={})  # those of the first provider
    wire, blocked = (
        (NoWire(), None) if request.recorded else wire_of(destination, endpoint, making.reach)
    )
    is_recorded_one = made.request == recorded
    return ReplayTurn(
        source=source,
        destination=destination,
        form=form,
        wire=wire,
        request=made.request,
        recorded=recorded,
        render_input=made.render_input,
        is_exact=is_recorded_one,
        is_recorded=request.recorded,
        is_rebuilt=made.basis == "telemetry" and not is_recorded_one,
        basis="recorded" if is_recorded_one else made.basis,
        remade=remade,
        notes=(
            *source.notes,
            *notes,
            *made.notes,
            *_outcome(request, is_recorded_one=is_recorded_one, is_changed=bool(mutations)),
        ),
        blocked=blocked,
        sends=not request.recorded,
    )


@dataclass(frozen=True, slots=True)
class _Made:
    """A changed request, what is read of it, and what must be noted."""

    request: bytes
    render_input: RenderInput
    basis: Basis
    notes: Sequence[str]


def _edited(
    source: ReplayedStep,
    form: WireFormat,
    recorded: bytes,
    mutations: Sequence[change.Mutation],
    past: Past | None,
) -> _Made:
    """Return the recorded request with the changes made in its JSON, and nothing else."""
    before, notes = recorded, []
    for spoken in past or ():
        if spoken.is_same:
            continue
        calls = [part.id for part in calls_in(spoken.recorded) if part.id]
        messages = with_words(
            before, form.path, calls=calls, before=text_of(spoken.recorded),
            after=text_of(spoken.found),
        )  # fmt: skip
        if messages is None:
            notes.append("an earlier answer is not in this request: its recorded words stay")
        before = messages or before
    data, more = edit_request(before, form.path, mutations, skip_absent=past is not None)
    _refuse_broken_pairs(form, data, recorded)
    render_input = given_in(data, form.path) if source.call is not None else RenderInput(model="")
    return _Made(data, render_input, "edited", [*notes, *more])


def _refuse_broken_pairs(form: WireFormat, data: bytes, recorded: bytes) -> None:
    """Raise where the changes parted a call from its result; what the sender sent is no matter."""
    if data == recorded:
        return
    try:
        problems = form.problems(read_json(data))
        known = bool(problems) and bool(form.problems(read_json(recorded)))
    except (ValueError, TypeError, AttributeError, KeyError):
        return  # of a shape that nobody checks: the provider says what is wrong with it
    if problems and not known:
        raise NotReplayable(ReplayReason.BROKEN_PAIRS, "; ".join(problems[:5]))


def _made_anew(
    source: ReplayedStep,
    destination: RecordedDestination,
    form: WireFormat,
    mutations: Sequence[change.Mutation],
    remade: Remade | None,
    recorded: bytes | None,
    past: Past | None,
    provider: str | None,
) -> _Made:
    """Return a request rendered from a compile, or from telemetry, and what is not the same."""
    render_input, notes = _input(
        source, destination, form, mutations, remade, past, is_sent_there=not provider
    )
    if provider is not None:
        render_input, dropped = _for_another(render_input, provider)
        notes += dropped
        if recorded is not None and remade is None:
            notes += _lost_there(source, destination, recorded, provider)
    request = _rendered(form, render_input, recorded if provider is None else None)
    if remade is None and recorded is None and (api := api_of(form.path)) is not None:
        notes.append(unknown_note(api.name, read_json(request)))
    if remade is not None and recorded is not None and provider is None and request != recorded:
        notes += _other_without_changes(source, remade, form, recorded)
    return _Made(request, render_input, "telemetry" if remade is None else "compiled", notes)


def _lost_there(
    source: ReplayedStep, destination: RecordedDestination, recorded: bytes, provider: str
) -> list[str]:
    """Return which parts of a recorded request have no form for another provider."""
    before = _json_of(recorded)
    if not isinstance(before, dict) or source.call is None:
        return []
    form = format_for(offline_destination(destination), destination.format_settings)
    try:
        again = form.render(rebuilt_from(source.call).render_input(stream=destination.is_stream))
    except (RequestRefused, ConfigError):
        lost = sorted(before.keys() - {"model", "messages", "input", "tools"})
    else:
        lost = lost_paths(before, again)
    if not lost:
        return []
    return [f"parts of the recorded request that the one to {provider} has not: {', '.join(lost)}"]


def _other_without_changes(
    source: ReplayedStep, remade: Remade, form: WireFormat, recorded: bytes
) -> list[str]:
    """Return what of a request differs although no change asks for it."""
    before = _json_of(recorded)
    if remade.unchanged is None or not isinstance(before, dict):
        return []
    try:
        again = form.render(_render_input(source, remade.unchanged, ()))
    except (RequestRefused, ConfigError):
        return []
    lost = lost_paths(before, again)
    if not lost:
        return []
    return [
        "rendered again without changes the request is not the recorded one; it differs, besides "
        f"the changes, at {', '.join(lost)}"
    ]


def _remade(
    connection: apsw.Connection,
    source: ReplayedStep,
    mutations: Sequence[change.Mutation],
    making: Making,
    past: Past | None,
) -> Remade | None:
    """Return the compile with its changes; None where there is none to make again."""
    if source.compilation is None or source.compilation.row.request_ref is None:
        return None
    return remake(
        connection, source, mutations, redactor=making.redactor, policy=making.policy, past=past
    )


def _input(
    source: ReplayedStep,
    recorded: RecordedDestination,
    form: WireFormat,
    mutations: Sequence[change.Mutation],
    remade: Remade | None,
    past: Past | None,
    *,
    is_sent_there: bool,
) -> tuple[RenderInput, list[str]]:
    """Return what is to be rendered, and what must be noted of it."""
    if remade is not None:
        return _render_input(source, remade.result, mutations), list(remade.notes)
    rebuilt = _rebuilt(source, mutations, past)
    api = api_of(form.path)
    if api is not None and is_sent_there and source.call is not None:
        rebuilt = replace(rebuilt, extra=added_fields(source.call.parameters, api.name))
    return rebuilt.render_input(stream=recorded.is_stream), list(rebuilt.notes)


def compile_turn(
    connection: apsw.Connection, source: ReplayedStep, request: ReplayInput, making: Making
) -> ReplayTurn:
    """Return a compile that no call used, made again: nothing is rendered for a provider, or sent.

    Raises NotReplayable.
    """
    remade = remake(
        connection, source, change_list(request), redactor=making.redactor, policy=making.policy
    )
    provider = remade.result.request.provider
    notes = ["no model call used this compile: only the compile was made again"]
    if not request.mutations and source.compilation is not None:
        is_same = remade.result.compile_hash == source.compilation.row.hash
        notes.append(f"it came out {'the same' if is_same else 'otherwise'}, by its hash")
    return ReplayTurn(
        source=source,
        destination=Destination(provider, provider, None, ""),
        form=PlainAnswers(provider, ""),
        wire=NoWire(),
        request=b"",
        render_input=from_payload(remade.result.payload, model=remade.result.request.model),
        is_exact=not request.mutations,
        basis="compiled",
        remade=remade,
        notes=(*remade.notes, *notes),
        sends=False,
    )


def change_list(request: ReplayInput) -> list[change.Mutation]:
    """Return the changes that are requested, checked."""
    return change.parse_mutations(request.mutations)


def _provider(mutations: Sequence[change.Mutation], recorded: RecordedDestination) -> str | None:
    """Return the provider a change names; None where it is that of the call."""
    named = [one.provider for one in mutations if isinstance(one, change.SetProvider)]
    if not named or named[-1] == recorded.provider:
        return None
    if not any(isinstance(one, change.SetModel) for one in mutations):
        raise NotReplayable(
            ReplayReason.MUTATION_INVALID, f"name a model of {named[-1]} too (set_model)"
        )
    return named[-1]


def _destination(
    recorded: RecordedDestination, provider: str | None, reach: Reach, *, is_recorded: bool
) -> tuple[Destination, list[str]]:
    if provider is not None:
        return destination_of(provider, reach), []
    if is_recorded:
        return offline_destination(recorded), []
    if not recorded.path:
        destination = unnamed_destination(recorded, reach)
    else:
        # What is changed anyway may go where this provider is configured; an exact one may not.
        destination = destination_for(recorded, replace(reach, elsewhere=True))
    return destination, address_notes(recorded, destination)


def _rebuilt(
    source: ReplayedStep, mutations: Sequence[change.Mutation], past: Past | None
) -> Rebuilt:
    if source.call is None:
        raise NotReplayable(ReplayReason.KIND, "it is read as no model call")
    if not source.call.input:
        raise NotReplayable(
            ReplayReason.METADATA_ONLY if is_withheld(source) else ReplayReason.NOT_RECORDED
        )
    if source.call.input_is_delta:
        raise NotReplayable(
            ReplayReason.NOT_RECORDED, "only the new messages of each call were recorded"
        )
    rebuilt = rebuilt_from(source.call)
    if past is None:
        return mutate_messages(rebuilt, mutations)
    for spoken in past:
        messages = with_answer(rebuilt.messages, spoken.recorded, spoken.found)
        rebuilt = replace(rebuilt, messages=messages or rebuilt.messages)
    for one in mutations:
        try:
            rebuilt = mutate_messages(rebuilt, [one])
        except NotReplayable as why:
            if why.reason is not ReplayReason.ITEM_UNKNOWN:
                raise
    return rebuilt


def _render_input(
    source: ReplayedStep, result: CompileResult, mutations: Sequence[change.Mutation]
) -> RenderInput:
    """Return the compiled context with everything else of the request."""
    recipe, call = source.recipe, source.call
    sampling = Sampling() if call is None else sampling_from(call)
    more: Json = {}
    is_stream = bool(call and call.stream)
    if recipe is not None:
        settings = dict(recipe.sampling)
        settings["stop"] = tuple(settings.get("stop") or ())
        known = {one.name for one in fields(Sampling)}
        sampling = Sampling(**{name: value for name, value in settings.items() if name in known})
        more = {name: value for name, value in recipe.parameters.items() if name in _RENDERED}
        is_stream = recipe.request.is_stream
    for one in mutations:
        if isinstance(one, change.SetSampling):
            sampling = resampled(sampling, one)
    return from_payload(
        result.payload,
        model=result.request.model,
        sampling=sampling,
        stream=is_stream,
        **more,
    )


def _for_another(render_input: RenderInput, provider: str) -> tuple[RenderInput, list[str]]:
    """Return the input without what only the other provider understands, and what that was."""
    usual = RenderInput(model="")
    dropped: dict[str, Any] = {
        name: getattr(usual, name)
        for name in _OWN
        if getattr(render_input, name) != getattr(usual, name)
    }
    sampling = render_input.sampling
    names = list(dropped)
    if provider == "anthropic":
        names += ["seed"] if sampling.seed is not None else []
        sampling = replace(sampling, seed=None)
    notes = [f"{name} is the first provider's own and was left out" for name in names]
    return replace(render_input, sampling=sampling, **dropped), notes


def _rendered(form: WireFormat, render_input: RenderInput, recorded: bytes | None) -> bytes:
    """Return the request's bytes; raises NotReplayable where there are none.

    Where the recorded bytes are known, they are edited to say what was rendered: a value that is
    the same keeps its bytes and its place.
    """
    try:
        body = form.render(render_input)
        data = request_bytes(body)
        if recorded is not None:
            text = JsonText(recorded)
            text.rewrite(None, read_json(data))
            data = text.bytes()
    except NotEditable:
        pass  # the recorded body is no JSON: the rendered one is sent as it is
    except (RequestRefused, ConfigError) as error:
        raise NotReplayable(ReplayReason.NOT_RENDERABLE, str(error), code=error.code) from None
    problems = form.problems(body)
    if problems:
        raise NotReplayable(ReplayReason.BROKEN_PAIRS, "; ".join(problems[:5]))
    return data


def _recorded(connection: apsw.Connection, source: ReplayedStep) -> bytes | None:
    try:
        return exact_request(connection, source)[1]
    except NotReplayable:
        return None


def _json_of(data: bytes) -> Any:
    try:
        return read_json(data)
    except ValueError:
        return None  # an upload, say


def _outcome(request: ReplayInput, *, is_recorded_one: bool, is_changed: bool) -> list[str]:
    """Say whether the changes changed anything, and that nothing was sent where it was not."""
    notes = []
    if is_changed and is_recorded_one:
        notes.append("the changes change nothing of the request: it is the recorded one")
    if request.recorded:
        text = "the request is the recorded one" if is_recorded_one else "the request is another"
        notes.append(f"offline: compiled and rendered, nothing was sent; {text}")
    return notes
