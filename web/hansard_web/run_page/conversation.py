"""The conversation reading of a run: its messages, in order, each once.

Agents send the whole conversation again with each call. Calls share the nodes of the message tree
as far as their prompts are equal, so what is new in a call is found without reading any text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import apsw

from hansard_collector.derivation.stored_span import read_step
from hansard_collector.derived_context.alignment import common_subsequence
from hansard_compiler.calls import Message, ToolCallPart, ToolResultPart
from hansard_store.content.messages import (
    CallRow,
    MessageRef,
    list_calls,
    list_tool_events,
    read_messages,
    read_nodes,
)
from hansard_store.steps.agent_graph import agents_above
from hansard_store.steps.flags import SpanFlag
from hansard_web.approvals.step_history import calls_not_run
from hansard_web.capture import Uncaptured, uncaptured
from hansard_web.media.stored import payload_lookup
from hansard_web.run_page.state import RunPageState
from hansard_web.run_page.waterfall import Look
from hansard_web.steps.facts import StepProblem, problem_of
from hansard_web.ui.format import count, duration, plural
from hansard_web.ui.messages import (
    ShownCall,
    ShownMessage,
    earlier_text,
    numbers_text,
    results_by_call,
    show_message,
)

CALLS_A_PAGE = 40
_NEIGHBOURS = 4  # calls before and after a page whose tool results and requests belong to it
_COMPARED = 8  # earlier calls that a broken prompt is laid beside


@dataclass(frozen=True, slots=True)
class TalkCall:
    """A call with what it added to the conversation; no bodies yet."""

    call: CallRow
    new: tuple[MessageRef, ...]
    new_numbers: tuple[int, ...]  # places in the prompt, from 1
    earlier: int  # messages of the prompt that were shown before
    answer: tuple[MessageRef, ...]


@dataclass(frozen=True, slots=True)
class Talk:
    """The calls of a run, and by span.id which agent called the one that makes a call."""

    calls: list[TalkCall]
    callers: Mapping[int, str | None]


@dataclass(frozen=True, slots=True)
class Turn:
    """A call as the page shows it: a divider, the new messages, the answer."""

    divider: str
    context_href: str | None
    span: str
    messages: tuple[ShownMessage, ...]
    is_selected: bool
    problem: StepProblem | None  # why the call failed


@dataclass(frozen=True, slots=True)
class ConversationReading:
    turns: tuple[Turn, ...]
    summary: str
    previous_href: str | None
    next_href: str | None
    is_empty: bool
    uncaptured: Uncaptured | None = None  # no call of the run says what it was sent, and why


def conversation_view(look: Look) -> ConversationReading:
    """Return one page of the conversation: bodies are read for its calls only."""
    connection, run = look.connection, look.run
    read: Talk = look.shown.readings.get("talk", lambda: _read_talk(look))
    talk = read.calls
    first = _first(talk, look.state)
    previous_href, next_href = look.pages(first, CALLS_A_PAGE, len(talk))
    page = talk[first : first + CALLS_A_PAGE]
    nearby = talk[max(first - _NEIGHBOURS, 0) : first + CALLS_A_PAGE + _NEIGHBOURS]
    bodies = read_messages(connection, _texts_for(page, nearby))
    events = list_tool_events(connection, run.id)
    spoken_in_order = [bodies[ref.text] for one in nearby for ref in one.new if ref.text in bodies]
    held = calls_not_run(connection, run.run_id)
    lookup = payload_lookup(connection)
    facts = ShownCall(events, results_by_call(spoken_in_order), held, lookup)
    requested = requested_calls(bodies.values())
    names = speakers(talk)
    turns = tuple(
        _turn(
            look,
            one,
            f"call {at} of {len(talk)}{_handoff(read, at - 1, names)}",
            bodies,
            facts,
            requested,
            agent=(one.call.agent_name or "") if names else "",
        )
        for at, one in enumerate(page, first + 1)
    )
    messages = sum(len(one.new) + len(one.answer) for one in talk)
    repeated = sum(one.earlier for one in talk)
    left_out = f"; {count(repeated)} repeats left out" if repeated else ""
    return ConversationReading(
        turns=turns,
        summary=f"{plural(messages, 'message')}, {plural(len(talk), 'call')}{left_out}"
        if talk
        else "",
        previous_href=previous_href,
        next_href=next_href,
        is_empty=not talk,
        uncaptured=_uncaptured(connection, run.id, talk),
    )


def _read_talk(look: Look) -> Talk:
    """Return every call of the run with what it added, in order of start. Linear in the messages.

    A call whose span names no agent, as those of most libraries, is of the nearest agent above it.
    """
    calls = model_calls(look.connection, look.run.id)
    above = agents_above(look.connection, look.run.run_id, look.picture.tree) if calls else {}
    named = [
        one
        if one.agent_name or one.span not in above
        else replace(one, agent_name=above[one.span].name)
        for one in calls
    ]
    callers = {one.span: above[one.span].caller for one in calls if one.span in above}
    return Talk(talk_of(look.connection, named), callers)


def speakers(talk: Sequence[TalkCall]) -> frozenset[str]:
    """Return the agents of a run where there are several; else none, as one needs no name."""
    names = frozenset(one.call.agent_name for one in talk if one.call.agent_name)
    return names if len(names) > 1 else frozenset()


def _handoff(talk: Talk, at: int, names: frozenset[str]) -> str:
    """Return which agent speaks, and where another spoke before, how it came to this one.

    The agent that called this one handed off to it. Agents that nobody called take turns.
    """
    call = talk.calls[at].call
    now = call.agent_name
    before = talk.calls[at - 1].call if at else None
    if not now:
        return ""
    if not names or before is None or not before.agent_name or before.agent_name == now:
        return f" · {now[:40]}"
    if talk.callers.get(before.span) == now:
        return f" · back to {now[:40]}"
    caller = talk.callers.get(call.span) or before.agent_name
    return f" · hand-off {caller[:40]} → {now[:40]}"


def _uncaptured(
    connection: apsw.Connection, run: int, talk: Sequence[TalkCall]
) -> Uncaptured | None:
    """Return why no call has a prompt, as its first call says; None where one has."""
    if any(one.call.input_prefix for one in talk):
        return None
    hidden = SpanFlag.DUPLICATE | SpanFlag.FOLDED
    calls = list_calls(connection, run)
    first = next((one for one in calls if one.role == "llm" and not one.flags & hidden), None)
    return None if first is None else uncaptured(read_step(connection, first.span))


def _first(talk: Sequence[TalkCall], state: RunPageState) -> int:
    if state.first is not None:
        return min(state.first, max(len(talk) - 1, 0))
    selected = next((at for at, one in enumerate(talk) if _key(one.call) == state.span), 0)
    return selected // CALLS_A_PAGE * CALLS_A_PAGE


def _key(call: CallRow) -> str:
    return call.step_id.partition("-")[2]


# ------------------------------------------------------------------------------ what is new


def model_calls(connection: apsw.Connection, run: int) -> list[CallRow]:
    """Return the model calls of a run that have messages, in order of start."""
    hidden = SpanFlag.DUPLICATE | SpanFlag.FOLDED
    return [
        call
        for call in list_calls(connection, run)
        if call.role == "llm"
        and not call.flags & hidden
        and (call.input_prefix or call.output_prefix)
    ]


def talk_of(connection: apsw.Connection, calls: Sequence[CallRow]) -> list[TalkCall]:
    """Return calls, of one run or of several in order, with what each added to those before."""
    leaves = {node for call in calls for node in (call.input_prefix, call.output_prefix) if node}
    nodes = read_nodes(connection, leaves)
    return list(_added(calls, nodes))


def _added(
    calls: Sequence[CallRow], nodes: Mapping[int, tuple[int, MessageRef]]
) -> Iterator[TalkCall]:
    seen: set[int] = set()
    answered: set[bytes] = set()
    known: set[bytes] = set()
    for at, call in enumerate(calls):
        fresh, length = _unseen(nodes, call.input_prefix, seen)
        start = length - len(fresh)
        positions = list(range(len(fresh)))
        if any(ref.match_hash in known and ref.match_hash not in answered for ref in fresh):
            before = _closest(calls[max(at - _COMPARED, 0) : at], nodes, fresh)
            pairs = common_subsequence(before, [ref.match_hash for ref in fresh])
            again = {position for _, position in pairs}
            positions = [position for position in positions if position not in again]
        # What a model answered was shown as its answer; in later prompts it is a repeat.
        positions = [
            position
            for position in positions
            if fresh[position].role != "assistant" or fresh[position].match_hash not in answered
        ]
        answer = tuple(_climb(nodes, call.output_prefix))
        known.update(ref.match_hash for ref in fresh)
        answered.update(ref.match_hash for ref in answer)
        known.update(ref.match_hash for ref in answer)
        yield TalkCall(
            call=call,
            new=tuple(fresh[position] for position in positions),
            new_numbers=tuple(start + position + 1 for position in positions),
            earlier=length - len(positions),
            answer=answer,
        )


def _unseen(
    nodes: Mapping[int, tuple[int, MessageRef]], leaf: int | None, seen: set[int]
) -> tuple[list[MessageRef], int]:
    """Return the messages behind the last node seen before, and the length of the whole list."""
    fresh, length = [], 0
    node = leaf or 0
    is_new = True
    while node:
        is_new = is_new and node not in seen
        parent, ref = nodes[node]
        if is_new:
            fresh.append(ref)
            seen.add(node)
        length += 1
        node = parent
    return fresh[::-1], length


def _climb(nodes: Mapping[int, tuple[int, MessageRef]], leaf: int | None) -> list[MessageRef]:
    found = []
    node = leaf or 0
    while node:
        node, ref = nodes[node]
        found.append(ref)
    return found[::-1]


def _closest(
    earlier: Sequence[CallRow],
    nodes: Mapping[int, tuple[int, MessageRef]],
    fresh: Sequence[MessageRef],
) -> list[bytes]:
    """Return what the earlier call that holds most of these messages was sent and answered."""
    hashes = Counter(ref.match_hash for ref in fresh)
    best: list[bytes] = []
    most = -1
    for call in earlier:
        held = [
            ref.match_hash
            for leaf in (call.input_prefix, call.output_prefix)
            for ref in _climb(nodes, leaf)
        ]
        shared = (hashes & Counter(held)).total()
        if shared >= most:
            best, most = held, shared
    return best


# ------------------------------------------------------------------------------ turns


def _texts_for(page: Sequence[TalkCall], nearby: Sequence[TalkCall]) -> set[int]:
    """Return what to read: the page, and around it what its tool cards are made of."""
    texts = {ref.text for one in page for ref in (*one.new, *one.answer)}
    for one in nearby:
        texts.update(ref.text for ref in one.new if ref.role == "tool")
        texts.update(ref.text for ref in one.answer)
    return texts


def requested_calls(messages: Iterable[Message]) -> set[str]:
    """Return the ids of all tool calls that models requested."""
    return {
        part.id
        for message in messages
        for part in message.parts
        if isinstance(part, ToolCallPart) and part.id
    }


def _turn(
    look: Look,
    one: TalkCall,
    number: str,
    bodies: Mapping[int, Message],
    facts: ShownCall,
    requested: set[str],
    *,
    agent: str,
) -> Turn:
    key = _key(one.call)
    placed = list(zip(one.new, one.new_numbers, strict=True))
    in_cards = [position for ref, position in placed if is_in_a_card(bodies[ref.text], requested)]
    messages = [
        show_message(bodies[ref.text], number=str(position), calls=facts)
        for ref, position in placed
        if position not in in_cards
    ]
    length = one.earlier + len(one.new)
    messages += [
        replace(
            show_message(
                bodies[ref.text],
                number=str(length + at),
                facts=_answer_facts(one.call),
                calls=facts,
            ),
            agent=agent,
        )
        for at, ref in enumerate(one.answer, 1)
    ]
    return Turn(
        divider=_divider(one, number, in_cards),
        context_href=look.address(span=key, tab="context"),
        span=key,
        messages=tuple(messages),
        is_selected=key == look.state.span,
        problem=_problem(look.connection, one.call),
    )


def _problem(connection: apsw.Connection, call: CallRow) -> StepProblem | None:
    """Return why a call failed; only calls that did are read."""
    if not call.flags & SpanFlag.ERROR:
        return None
    return problem_of(read_step(connection, call.span))


def is_in_a_card(message: Message, requested: set[str]) -> bool:
    """A result whose call is on the page stands in the call's card."""
    results = [part for part in message.parts if isinstance(part, ToolResultPart)]
    return (
        message.role == "tool"
        and len(results) == len(message.parts)
        and all(part.id in requested for part in results)
    )


def _divider(one: TalkCall, number: str, in_cards: Sequence[int]) -> str:
    call = one.call
    parts = [number]
    if call.tokens_input is not None:
        parts.append(f"{count(call.tokens_input)} tokens in")
    if one.earlier:
        parts.append(earlier_text(one.earlier, set(one.new_numbers)))
    if in_cards:
        parts.append(f"message {numbers_text(in_cards)} in the card of its call")
    return " · ".join(parts)


def _answer_facts(call: CallRow) -> list[str]:
    facts = [call.model] if call.model else []
    if call.start_ns is not None and call.end_ns is not None:
        facts.append(duration(max(call.end_ns - call.start_ns, 0)))
    if call.tokens_output is not None:
        facts.append(plural(call.tokens_output, "token"))
    return facts
