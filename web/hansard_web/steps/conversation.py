"""The Conversation tab of a step: what a call was sent that is new, and what it answered."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import apsw

from hansard_collector.derivation.stored_span import StepReading
from hansard_collector.derived_context.alignment import common_subsequence
from hansard_collector.derived_context.context import PlacedCall
from hansard_compiler.calls import Message
from hansard_store.content.messages import (
    MessageRef,
    list_tool_events,
    read_chain,
    read_chains,
    read_messages,
)
from hansard_store.runs.queries import RunItem
from hansard_web.approvals.step_history import calls_not_run
from hansard_web.media.stored import payload_lookup
from hansard_web.ui.format import plural
from hansard_web.ui.messages import (
    SentResult,
    ShownCall,
    ShownMessage,
    StoredMedia,
    earlier_text,
    results_by_call,
    show_message,
)

_MOST_MESSAGES = 60  # new ones, in one look; the rest is a click away
_MOST_AT_ALL = 1_000
_INPUT, _OUTPUT = "gen_ai.input.messages_ref", "gen_ai.output.messages_ref"


@dataclass(frozen=True, slots=True)
class ConversationTab:
    """A call's prompt and answer; by default only what the call before had not been sent."""

    messages: tuple[ShownMessage, ...]
    left_out: int  # new messages beyond what one look shows
    answers: tuple[ShownMessage, ...]
    no_answer: str  # why there is none
    earlier: str = ""  # "7 earlier messages"; "" for none
    earlier_from: str = ""  # "call 3", or "an earlier run of this conversation"
    all_href: str | None = None  # shows everything; None when it does already
    is_delta: bool = False  # the sender gives only what is new


def conversation_tab(
    connection: apsw.Connection,
    placed: PlacedCall,
    reading: StepReading,
    *,
    run: RunItem,
    show_all: bool,
    all_href: str,
) -> ConversationTab:
    """Read what a call was sent and what it answered; bodies only for what is shown."""
    output = read_chain(connection, placed.call.output_prefix)
    new = range(len(placed.messages)) if show_all else _new_messages(connection, placed)
    shown = list(new)[-(_MOST_AT_ALL if show_all else _MOST_MESSAGES) :]
    refs = [placed.messages[at] for at in shown]
    bodies = read_messages(connection, {ref.text for ref in (*refs, *output)})
    events = list_tool_events(connection, run.id)
    held = calls_not_run(connection, run.run_id)
    payloads = payload_lookup(connection)
    results = results_by_call([bodies[ref.text] for ref in refs])
    messages = [
        show_message(
            bodies[ref.text],
            number=str(at + 1),
            calls=ShownCall(events, results, held, payloads),
        )
        for at, ref in zip(shown, refs, strict=True)
    ]
    call = reading.normal.call
    if call is not None and not placed.messages:
        messages = _unwritten(call.input, reading, _INPUT, payloads)
    model = (call.response_model or call.request_model) if call else None
    facts = [model] if model else []
    if call and call.tokens.output is not None:
        facts.append(plural(call.tokens.output, "token"))
    later = _later_results(connection, placed) if output else {}
    answers = [
        show_message(
            bodies[ref.text],
            number=str(len(placed.messages) + at),
            facts=facts,
            calls=ShownCall(events, later, held, payloads),
        )
        for at, ref in enumerate(output, 1)
    ]
    if call is not None and not answers:
        answers = _unwritten(call.output, reading, _OUTPUT, payloads)
    earlier = len(placed.messages) - len(new)
    return ConversationTab(
        earlier=earlier_text(earlier, {at + 1 for at in new}) if earlier else "",
        earlier_from=_earlier_from(placed),
        all_href=all_href if earlier or len(shown) < len(new) else None,
        messages=tuple(messages),
        left_out=len(new) - len(shown),
        answers=tuple(answers),
        no_answer=_no_answer(reading),
        is_delta=placed.call.input_is_delta,
    )


def is_unwritten(reading: StepReading) -> bool:
    """Whether a call has messages only in payloads, which were too large to make rows of."""
    call = reading.normal.call
    if call is None or not (call.input or call.output):
        return False
    return not reading.view.attributes.keys().isdisjoint({_INPUT, _OUTPUT})


def unwritten_tab(reading: StepReading) -> ConversationTab:
    """Return the conversation of such a call, read from its payloads for this look."""
    call = reading.normal.call
    messages = _unwritten(call.input if call else (), reading, _INPUT)
    answers = _unwritten(call.output if call else (), reading, _OUTPUT)
    left_out = len(call.input) - len(messages) if call else 0
    return ConversationTab(tuple(messages), left_out, tuple(answers), _no_answer(reading))


def _unwritten(
    messages: Sequence[Message],
    reading: StepReading,
    key: str,
    payloads: Callable[[str], StoredMedia | str] | None = None,
) -> list[ShownMessage]:
    """Return the last messages of a payload that was too large for rows: read for this look."""
    ref = reading.view.attributes.get(key)
    rest = f"/v1/payloads/{ref}" if isinstance(ref, str) else None
    numbered = list(enumerate(messages, 1))[-_MOST_MESSAGES:]
    step = f"{reading.view.trace_id.hex()}-{reading.view.span_id.hex()}"
    part = "sent" if key == _INPUT else "answer"
    return [
        show_message(
            message,
            number=str(at),
            rest=rest,
            calls=ShownCall(payloads=payloads),
            media=f"/v1/steps/{step}/media/{part}-{at - 1}",
        )
        for at, message in numbered
    ]


def _new_messages(connection: apsw.Connection, placed: PlacedCall) -> list[int]:
    """Return the positions that neither the prompt nor the answer of the call before held."""
    if placed.baseline is None:
        return list(range(len(placed.messages)))
    before = [*placed.baseline_messages, *read_chain(connection, placed.baseline.output_prefix)]
    pairs = common_subsequence(_matches(before), _matches(placed.messages))
    known = {at for _, at in pairs}
    new = [at for at in range(len(placed.messages)) if at not in known]
    # The same prompt again: its last message is the best title.
    return new or list(range(len(placed.messages)))[-1:]


def _matches(refs: Sequence[MessageRef]) -> list[bytes]:
    return [ref.match_hash for ref in refs]


def _later_results(connection: apsw.Connection, placed: PlacedCall) -> dict[str, SentResult]:
    """Return the results that the next calls sent back, by call id."""
    known = {ref.text for ref in placed.messages}
    chains = read_chains(connection, [call.input_prefix for call in placed.later])
    texts = [
        ref.text
        for call in placed.later
        for ref in chains.get(call.input_prefix or 0, [])
        if ref.role == "tool" and ref.text not in known
    ]
    bodies = read_messages(connection, texts)
    return results_by_call(bodies[text] for text in texts)


def _earlier_from(placed: PlacedCall) -> str:
    if placed.baseline is None:
        return ""
    if placed.baseline_number is None:
        return "in an earlier run of this conversation"
    return f"already sent or answered in call {placed.baseline_number} of {placed.of}"


def _no_answer(reading: StepReading) -> str:
    error = reading.normal.error or (reading.normal.call and reading.normal.call.error)
    if error:
        return "The call failed; there is no answer."
    if not reading.view.end_ns:
        return "The call is still open; no answer yet."
    return "No response was recorded"
