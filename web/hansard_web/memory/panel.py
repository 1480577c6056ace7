"""What memory a run or a step read, wrote and had in its prompts: a panel on their pages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import apsw

from hansard_compiler.errors import AmbiguousIdError, NotFoundError
from hansard_store.compilations.receipts import FoundReceipt
from hansard_store.memory.access_log import accesses_in
from hansard_store.memory.records import Access, Memory
from hansard_store.memory.rows import find_number, memories_by_number
from hansard_web.compile_view.labels import DECISIONS
from hansard_web.memory.labels import ACCESSES, STATES, place_of, text_of, title_of, type_words
from hansard_web.memory.record import uses_in_run
from hansard_web.ui.format import plural

_SHOWN = 40


@dataclass(frozen=True, slots=True)
class _Line:
    """One record, and what was done with it."""

    decision: str  # of a compile; "" for a read or write
    word: str
    title: str
    about: str
    href: str
    step_href: str
    at_ns: int


@dataclass(frozen=True, slots=True)
class MemoryPanel:
    """`say` sums it up; `all_href` leads to the explorer, narrowed to the run."""

    say: str
    first: str  # what a memory says that was in a prompt, else one that was touched
    lines: tuple[_Line, ...]
    all_href: str


def panel_of_run(connection: apsw.Connection, run_id: str, *, now_ns: int) -> MemoryPanel | None:
    """Return the panel of a run; None where it touched no memory."""
    touched = accesses_in(connection, bytes.fromhex(run_id))
    used = uses_in_run(connection, run_id)
    return _panel(connection, run_id, touched, used, now_ns=now_ns)


def panel_of_step(
    connection: apsw.Connection, run_id: str, step_id: str, compile_step: str, *, now_ns: int
) -> MemoryPanel | None:
    """Return the panel of a step and of the compile it was made by; None where there is nothing."""
    trace_id = bytes.fromhex(run_id)
    touched = accesses_in(connection, trace_id, bytes.fromhex(step_id[33:49]))
    used: list[FoundReceipt] = []
    if compile_step:
        used = [one for one in uses_in_run(connection, run_id) if one.step_id == compile_step]
    return _panel(connection, run_id, touched, used, now_ns=now_ns)


def _panel(
    connection: apsw.Connection,
    run_id: str,
    touched: Sequence[Access],
    used: Sequence[FoundReceipt],
    *,
    now_ns: int,
) -> MemoryPanel | None:
    if not touched and not used:
        return None
    ids = [one.memory_id for one in touched] + [one.receipt.item_id for one in used]
    known = _memories(connection, ids, now_ns=now_ns)
    shown = [one for one in touched if one.kind != "candidate"]
    lines = [_use(one, known) for one in used] + [_access(one, known) for one in shown]
    return MemoryPanel(
        say=", ".join(_sums(touched, used)),
        first=_first(touched, used, known),
        lines=tuple(sorted(lines, key=lambda line: -line.at_ns)[:_SHOWN]),
        all_href=f"/memory?run={run_id}&state=all",
    )


def _first(
    touched: Sequence[Access], used: Sequence[FoundReceipt], known: Mapping[str, Memory]
) -> str:
    """Return what the first memory says that is in a prompt, else the first that was touched."""
    ids = [one.receipt.item_id for one in used if one.receipt.decision != "exclude"]
    ids += [one.memory_id for one in touched if one.memory_id]
    return next(
        (" ".join(text_of(known[one].content)[:400].split()) for one in ids if one in known), ""
    )


def _memories(
    connection: apsw.Connection, ids: Iterable[str | None], *, now_ns: int
) -> Mapping[str, Memory]:
    numbers = []
    for one in dict.fromkeys(ids):
        try:
            numbers.append(find_number(connection, one or ""))
        except (NotFoundError, AmbiguousIdError):
            continue  # a memory of another store, named by a compile
    found = memories_by_number(connection, numbers, now_ns=now_ns)
    return {one.memory_id: one for one in found.values()}


def _sums(touched: Sequence[Access], used: Sequence[FoundReceipt]) -> list[str]:
    reads = {one.memory_id for one in touched if one.kind == "read" and one.memory_id}
    changed = {one.memory_id for one in touched if one.kind not in ("read", "candidate")}
    went_in = sum(one.receipt.decision != "exclude" for one in used)
    found = [
        f"{len(reads)} read" if reads else "",
        f"{len(changed)} written or changed" if changed else "",
        f"{went_in} in prompts, {len(used) - went_in} left out" if used else "",
    ]
    empty = sum(one.kind == "read" and one.memory_id is None for one in touched)
    found.append(f"{plural(empty, 'read')} that found nothing" if empty else "")
    return [one for one in found if one]


def _use(found: FoundReceipt, known: Mapping[str, Memory]) -> _Line:
    one = found.receipt
    title, about, href = _named(known.get(one.item_id), one.item_id)
    why = f" · {one.reason.replace('_', ' ')}" if one.decision == "exclude" else ""
    return _Line(
        decision=one.decision if one.decision in DECISIONS else "",
        word=DECISIONS.get(one.decision, one.decision),
        title=title,
        about=about + why,
        href=href,
        step_href=f"/steps/{found.step_id}/context?item={one.item_id}#i{one.ordinal}",
        at_ns=found.started_ns,
    )


def _access(one: Access, known: Mapping[str, Memory]) -> _Line:
    if one.memory_id is None:
        title, about, href = "nothing was found", "", ""
    else:
        title, about, href = _named(known.get(one.memory_id), one.memory_id)
    return _Line(
        decision="",
        word=ACCESSES.get(one.kind, one.kind),
        title=title,
        about=about,
        href=href,
        step_href=f"/steps/{one.step_id}" if one.step_id else "",
        at_ns=one.time_ns,
    )


def _named(memory: Memory | None, memory_id: str) -> tuple[str, str, str]:
    if memory is None:
        return memory_id, "not in this store", ""
    state = "" if memory.state == "current" else f" · {STATES[memory.state]}"
    about = (
        f"{type_words(memory.memory_type)} · {place_of(memory)} · {memory.confidence:.2f}{state}"
    )
    return title_of(memory), about, f"/memory/{memory.memory_id}"
