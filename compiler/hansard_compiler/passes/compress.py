"""Pass 8: shorten what did not fit whole. A failed or empty attempt replaces nothing."""

from __future__ import annotations

from hansard_compiler.compression import Extract
from hansard_compiler.items import Item
from hansard_compiler.layout import frame_tokens
from hansard_compiler.passes.score import query_of
from hansard_compiler.ports import Compressor
from hansard_compiler.reasons import ReasonCode
from hansard_compiler.state import State, Told

_BUILT_IN = Extract()


def run(state: State) -> State:
    """Shorten to what was allotted, or leave the item out; the original stays by reference.

    The compressor is given what may be shown and nothing else.
    """
    usual = Told("include", ReasonCode.NOT_COMPRESSED)
    if not state.allotted:
        return state.after("compress", usual)
    query = query_of(state, state.guarded)
    told: dict[str, Told] = {}
    shortened: dict[str, tuple[str, int]] = {}
    for item in state.live:
        most = state.allotted.get(item.id)
        if most is None:
            continue
        made, note = _shorten(state, item, query=query, most=most - frame_tokens(item))
        if made is None:
            missed = state.tokens[item.id] - most
            reason = ReasonCode.COMPRESSION_FAILED
            told[item.id] = Told("exclude", reason, note, missed_tokens=missed)
        else:
            shortened[item.id] = (made[0], made[1] + frame_tokens(item))
            told[item.id] = Told("include", ReasonCode.COMPRESSED_TO_FIT, note)
            told[item.id] = told[item.id]._replace(decision="compress")
    _take_groups_out(state, told, shortened)
    return state.after("compress", usual, told, shortened=shortened)


def _shorten(
    state: State, item: Item, *, query: str, most: int
) -> tuple[tuple[str, int] | None, str | None]:
    """Return a text and its tokens, or None; and what there is to say about it."""
    compressor, note = state.ports.compressor, None
    if compressor is not None:
        made, note = _attempt(compressor, state, item, query=query, most=most)
        if made is not None:
            return made, None
        note = f"the compressor given {note}; the built-in one was used"
    made, failed = _attempt(_BUILT_IN, state, item, query=query, most=most)
    return made, note if made is not None else failed


def _attempt(
    compressor: Compressor, state: State, item: Item, *, query: str, most: int
) -> tuple[tuple[str, int] | None, str | None]:
    counter, text = state.ports.counter, state.guarded[item.id].text
    if most <= 0:
        return None, "had no room"
    try:
        made = compressor(text, query=query, target_tokens=most, counter=counter)
    except Exception as failed:  # a compressor may ask a model: anything can go wrong there
        return None, f"raised {type(failed).__name__}"
    if made is None or not made.strip():
        return None, "gave nothing"
    clean = state.ports.redactor.redact_text(made).text
    tokens = counter.count(clean)
    if tokens > most:
        return None, f"gave {tokens} tokens where {most} were allotted"
    return (clean, tokens), None


def _take_groups_out(
    state: State, told: dict[str, Told], shortened: dict[str, tuple[str, int]]
) -> None:
    for item_id in [one for one, what in told.items() if what.decision == "exclude"]:
        for member in state.groups.get(item_id, ()):
            if member != item_id:
                shortened.pop(member, None)
                told[member] = Told("exclude", ReasonCode.GROUP_WITHHELD, related=item_id)
