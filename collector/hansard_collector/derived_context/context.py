"""The derived context of a stored call: which call it continues, and what changed between them."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import apsw

from hansard_collector.derived_context.alignment import equal_run
from hansard_collector.derived_context.cache_breaks import lost_tokens
from hansard_collector.derived_context.origins import Origin, OriginEvidence, Sent, squeezed
from hansard_collector.derived_context.provenance import (
    CHARS_PER_TOKEN,
    MESSAGE_OVERHEAD_TOKENS,
    Candidate,
    ItemComparison,
    best_baseline,
    compare,
)
from hansard_compiler.calls import (
    Json,
    MediaPart,
    Message,
    OtherPart,
    Part,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from hansard_compiler.canonical import canonical_json, stable_hash
from hansard_store.content.messages import (
    Ancestor,
    CallRow,
    MessageRef,
    first_carriers,
    list_ancestry,
    list_calls,
    list_earlier_runs,
    list_tool_events,
    read_chain,
    read_chains,
    read_messages,
)
from hansard_store.steps.flags import SpanFlag

_MOST_EARLIER = 400  # calls before this one that are looked at
_MOST_TIES = 40  # of them, those that begin alike and are compared message by message
_LATER = 4  # calls after it that may have sent back the results of its calls
_RESULT_FIELDS = ("tool_result", "output")  # texts.py: what steps are stored to have answered


@dataclass(frozen=True, slots=True)
class PlacedCall:
    """A call among the calls of its run, and the earlier call that it continues."""

    call: CallRow
    number: int  # from 1, among the model calls of the run
    of: int
    messages: list[MessageRef]
    baseline: CallRow | None
    baseline_number: int | None  # None for a call of an earlier run
    baseline_messages: list[MessageRef]
    earlier: tuple[CallRow, ...]  # all calls before this one, earlier runs first
    later: tuple[CallRow, ...]  # the next few
    earlier_runs: tuple[int, ...]  # of the same conversation

    @property
    def is_first(self) -> bool:
        return not self.earlier


def place_call(
    connection: apsw.Connection, *, run: int, span: int, conversation_id: str | None
) -> PlacedCall | None:
    """Find a call and the one it continues; None when the span holds no model call.

    Only calls with messages, in or out, count: one without shows nothing to be compared.
    """
    everything = [call for call in list_calls(connection, run) if says_something(call)]
    calls = [
        call for call in everything if not call.flags & SpanFlag.DUPLICATE or call.span == span
    ]
    at = next((at for at, call in enumerate(calls) if call.span == span), None)
    if at is None:
        return None
    call = calls[at]
    ancestry = list_ancestry(connection, run)
    earlier = [one for one in calls[:at] if one.role == call.role][-_MOST_EARLIER:]
    chains = read_chains(connection, [one.input_prefix for one in (*earlier, call)])
    baseline = baseline_of(call, earlier, chains, ancestry)
    runs: list[int] = []
    if baseline is None and conversation_id is not None:
        runs = list_earlier_runs(
            connection, run=run, conversation_id=conversation_id, before_ns=call.sort_ns
        )
        before = [one for number in reversed(runs) for one in list_calls(connection, number)]
        before = [one for one in before if says_something(one) and one.role == call.role]
        earlier = [*before, *earlier][-_MOST_EARLIER:]
        chains |= read_chains(connection, [one.input_prefix for one in earlier])
        baseline = baseline_of(call, earlier, chains, ancestry)
    return PlacedCall(
        call=call,
        number=at + 1,
        of=len(calls),
        messages=_chain(chains, call),
        baseline=baseline,
        baseline_number=None if baseline is None else _number(calls, baseline),
        baseline_messages=[] if baseline is None else _chain(chains, baseline),
        earlier=tuple(earlier),
        later=tuple(calls[at + 1 : at + 1 + _LATER]),
        earlier_runs=tuple(runs),
    )


def says_something(call: CallRow) -> bool:
    """Return whether a call has messages and is not a mere announcement of one."""
    has_messages = call.input_prefix is not None or call.output_prefix is not None
    return has_messages and not call.flags & SpanFlag.FOLDED


def _number(calls: Sequence[CallRow], sought: CallRow) -> int | None:
    return next((at for at, call in enumerate(calls, 1) if call.span == sought.span), None)


def _chain(chains: Mapping[int, list[MessageRef]], call: CallRow) -> list[MessageRef]:
    return chains.get(call.input_prefix or 0, [])


def baseline_of(
    call: CallRow,
    earlier: Sequence[CallRow],
    chains: Mapping[int, list[MessageRef]],
    ancestry: Mapping[bytes, Ancestor],
) -> CallRow | None:
    """Return the earlier call that a call continues, by the messages of both.

    None for a call that sends only what is new: what it does not repeat was sent all the same, and
    may not be called dropped.
    """
    if call.input_is_delta:
        return None
    earlier = [one for one in earlier if not one.input_is_delta]
    own = _chain(chains, call)
    own_texts = [message.text for message in own]
    prefixes = [
        equal_run(own_texts, [message.text for message in _chain(chains, one)]) for one in earlier
    ]
    longest = max(prefixes, default=0)
    ties = [at for at, prefix in enumerate(prefixes) if prefix == longest][-_MOST_TIES:]
    counts = Counter(message.match_hash for message in own)
    candidates = [
        Candidate(
            key=at,
            agent_name=agent_of(earlier[at], ancestry),
            shared_prefix=longest,
            shared=_shared(counts, _chain(chains, earlier[at])),
        )
        for at in ties
    ]
    found = best_baseline(candidates, agent_name=agent_of(call, ancestry))
    return None if found is None else earlier[found.key]


def _shared(counts: Counter[bytes], others: Iterable[MessageRef]) -> int:
    return (counts & Counter(message.match_hash for message in others)).total()


def agent_of(call: CallRow, ancestry: Mapping[bytes, Ancestor]) -> str | None:
    """Return the agent that made a call: by its own attributes, else the nearest one above it."""
    if call.agent_name is not None:
        return call.agent_name
    seen = set()
    above = call.parent_span_id
    while above is not None and above not in seen and above in ancestry:
        seen.add(above)
        if ancestry[above].role == "agent":
            return ancestry[above].name
        above = ancestry[above].parent_span_id
    return None


# ------------------------------------------------------------------------------ the comparison


@dataclass(frozen=True, slots=True)
class DerivedContext:
    """A comparison with the messages that its rows point at."""

    comparison: ItemComparison
    tools: tuple[Json, ...]  # of this call, where they are the first row
    current: tuple[Message | None, ...]  # None: the list of tool definitions
    previous: tuple[Message | None, ...]


def derive_context(
    connection: apsw.Connection,
    placed: PlacedCall,
    *,
    run: int,
    tools: Sequence[Json] = (),
    previous_tools: Sequence[Json] = (),
) -> DerivedContext:
    """Compare a call with the one it continues; with none, every message is *added*.

    Tool definitions are the message before all others, where both calls tell them: a list on one
    side only is a gap in recording more often than a change.
    """
    if placed.baseline is not None and not (tools and previous_tools):
        tools = previous_tools = ()
    refs = {ref.text: ref for ref in (*placed.messages, *placed.baseline_messages)}
    bodies = read_messages(connection, refs)
    current = _sent_list(placed.messages, bodies, tools)
    previous = _sent_list(placed.baseline_messages, bodies, previous_tools)
    evidence = _evidence(connection, placed, run, [*current, *previous])
    baseline = placed.baseline
    return DerivedContext(
        tools=tuple(tools),
        comparison=compare(
            previous,
            current,
            evidence=evidence,
            billed=placed.call.tokens_input,
            previous_billed=None if baseline is None else baseline.tokens_input,
        ),
        current=_bodies(placed.messages, bodies, tools),
        previous=_bodies(placed.baseline_messages, bodies, previous_tools),
    )


def _sent_list(
    refs: Sequence[MessageRef], bodies: Mapping[int, Message], tools: Sequence[Json]
) -> list[Sent]:
    found = [sent(ref, bodies[ref.text]) for ref in refs]
    if tools:
        text = canonical_json(list(tools))
        digest = stable_hash(list(tools))
        found.insert(0, Sent(digest, digest, "tools", text))
    return found


def _bodies(
    refs: Sequence[MessageRef], bodies: Mapping[int, Message], tools: Sequence[Json]
) -> tuple[Message | None, ...]:
    messages = [bodies[ref.text] for ref in refs]
    return (None, *messages) if tools else tuple(messages)


def sent(ref: MessageRef, message: Message) -> Sent:
    """Return a message as comparing needs it."""
    calls = (part.id for part in message.parts if isinstance(part, ToolCallPart | ToolResultPart))
    return Sent(
        hash=ref.hash,
        match_hash=ref.match_hash,
        role=ref.role,
        text=text_of(message),
        call_ids=tuple(call for call in calls if call),
    )


def text_of(message: Message) -> str:
    """Return a message as one text, calls and results included."""
    return "\n".join(text for text in map(_part_text, message.parts) if text)


def _part_text(part: Part) -> str:
    match part:
        case TextPart() | ReasoningPart():
            return part.text
        case ToolCallPart():
            return f"{part.name}({_plain(part.arguments)})"
        case ToolResultPart():
            return _plain(part.content)
        case MediaPart():
            return f"[{part.media_type or 'media'} {part.payload or part.uri or ''}]"
        case OtherPart():
            return _plain(part.value)


def _plain(value: object) -> str:
    return value if isinstance(value, str) else canonical_json(value)


def _evidence(
    connection: apsw.Connection, placed: PlacedCall, run: int, messages: Sequence[Sent]
) -> OriginEvidence:
    outputs: dict[bytes, Origin] = {}
    chains = read_chains(connection, [call.output_prefix for call in placed.earlier])
    for call in placed.earlier:
        for message in chains.get(call.output_prefix or 0, []):
            outputs.setdefault(message.match_hash, Origin("output", call.step_id, call.name))
    events = [
        event
        for number in (*placed.earlier_runs, run)
        for event in list_tool_events(connection, number).values()
    ]
    return OriginEvidence(
        outputs=outputs,
        asks={
            event.call_id: Origin("output", event.asked_by.step_id, event.asked_by.name)
            for event in events
            if event.asked_by is not None and event.asked_by.step_id != placed.call.step_id
        },
        ran={
            event.call_id: Origin(
                "result", event.ran.link.step_id, event.name or event.ran.link.name
            )
            for event in events
            if event.ran is not None
        },
        results=_results(connection, messages, {*placed.earlier_runs, run}),
    )


def _results(
    connection: apsw.Connection, messages: Sequence[Sent], runs: set[int]
) -> dict[str, Origin]:
    """Find messages whose whole text is the stored response of a step of these runs."""
    by_digest = {
        hashlib.sha256(field.encode() + b"\0" + message.text.encode("utf-8", "replace")).digest():
            message.text
        for message in messages
        if message.role in ("tool", "user") and message.text
        for field in _RESULT_FIELDS
    }  # fmt: skip
    return {
        squeezed(by_digest[digest]): Origin(
            "memory" if carrier.role == "memory" else "result",
            carrier.link.step_id,
            carrier.link.name,
        )
        for digest, carrier in first_carriers(connection, by_digest).items()
        if carrier.run in runs and carrier.role not in ("agent", "workflow", "chain")
    }


def read_answer(connection: apsw.Connection, call: CallRow) -> list[Message]:
    """Return the response of a call."""
    refs = read_chain(connection, call.output_prefix)
    bodies = read_messages(connection, {ref.text for ref in refs})
    return [bodies[ref.text] for ref in refs]


# ---- the cache breaks of a run

# Larger runs are not summed up: that would take longer than the page that shows it.
_MOST_CALLS = 1_000
_MOST_TEXTS = 4_000
_MOST_BEFORE = 150  # calls that each one is laid beside


@dataclass(frozen=True, slots=True)
class RunBreaks:
    """Figures of a whole run; tokens are estimates as in `provenance`."""

    calls: int
    breaks: int
    lost_tokens: int
    lost_by_span: Mapping[int, int]  # of the calls that broke it, by span.id


def run_breaks(connection: apsw.Connection, run: int) -> RunBreaks | None:
    """Return what cache breaks cost a run; None for runs too large to sum up on the way.

    Each call is laid beside the one it continues: they part where their equal beginning ends, and
    what stood behind it in both was paid again.
    """
    calls = [
        call
        for call in list_calls(connection, run)
        if call.role == "llm" and says_something(call) and not call.flags & SpanFlag.DUPLICATE
    ]
    if len(calls) > _MOST_CALLS:
        return None
    chains = read_chains(connection, [call.input_prefix for call in calls])
    texts = {ref.text for chain in chains.values() for ref in chain}
    if len(texts) > _MOST_TEXTS:
        return None
    sizes = {
        text: len(text_of(message)) / CHARS_PER_TOKEN + MESSAGE_OVERHEAD_TOKENS
        for text, message in read_messages(connection, texts).items()
    }
    ancestry = list_ancestry(connection, run)
    broken = {}
    for at, call in enumerate(calls):
        before = baseline_of(call, calls[max(at - _MOST_BEFORE, 0) : at], chains, ancestry)
        lost = None if before is None else lost_tokens(call, before, chains, sizes)
        if lost is not None:
            broken[call.span] = lost
    return RunBreaks(len(calls), len(broken), sum(broken.values()), broken)
