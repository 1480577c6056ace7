"""Pass 8: shorten what did not fit whole. A failed or empty attempt replaces nothing."""

from __future__ import annotations

from hansard_compiler.compile.compression import Shortened, Shortener
from hansard_compiler.compile.reasons import ReasonCode
from hansard_compiler.compile.state import CompileState, Ruling

_NOT_COMPRESSED = Ruling("include", ReasonCode.NOT_COMPRESSED)


def run(state: CompileState) -> CompileState:
    """Report what was shortened; the original stays by reference.

    The budget gives what an item leaves of its allotment to the next one, and so has shortened it
    already. In a compile of 0.1 it is shortened here, to what it was allotted.
    """
    if not state.allotted:
        return state.after("compress", _NOT_COMPRESSED)
    if state.request.compile_config.compiler_version == 1:
        return _of_version1(state)
    rulings = {one: _compressed(state.remarks.get(one)) for one in state.shortened}
    return state.after("compress", _NOT_COMPRESSED, rulings)


def _compressed(note: str | None) -> Ruling:
    return Ruling("compress", ReasonCode.COMPRESSED_TO_FIT, note)


def _of_version1(state: CompileState) -> CompileState:
    """Shorten to what was allotted, or leave the item out."""
    rulings: dict[str, Ruling] = {}
    shortened: dict[str, tuple[str, int]] = {}
    shortener = Shortener(state)
    for item in state.live:
        most = state.allotted.get(item.id)
        if most is None:
            continue
        made: Shortened = shortener.shorten(item, most)
        if made.text is None:
            missed = state.tokens[item.id] - most
            reason = ReasonCode.COMPRESSION_FAILED
            rulings[item.id] = Ruling("exclude", reason, made.note, missed_tokens=missed)
        else:
            shortened[item.id] = (made.text, made.tokens)
            rulings[item.id] = _compressed(made.note)
    _take_groups_out(state, rulings, shortened)
    return state.after("compress", _NOT_COMPRESSED, rulings, shortened=shortened)


def _take_groups_out(
    state: CompileState, rulings: dict[str, Ruling], shortened: dict[str, tuple[str, int]]
) -> None:
    for item_id in [one for one, what in rulings.items() if what.decision == "exclude"]:
        for member in state.groups.get(item_id, ()):
            if member != item_id:
                shortened.pop(member, None)
                rulings[member] = Ruling("exclude", ReasonCode.GROUP_WITHHELD, related=item_id)
