"""The Context tab: what filled the prompt. Derived here, until a sender gives receipts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import apsw

from hansard_collector.derivation.stored_span import StepReading, read_step
from hansard_collector.derived_context.context import (
    DerivedContext,
    PlacedCall,
    RunBreaks,
    derive_context,
    run_breaks,
    text_of,
)
from hansard_collector.derived_context.origins import Origin
from hansard_collector.derived_context.provenance import ItemChange, ItemComparison, ProvenanceRow
from hansard_compiler.calls import Json, Message
from hansard_store.steps.queries import StepSkeleton
from hansard_web.compile_view.bar import GAP_PCT, KeyEntry, Segment
from hansard_web.compile_view.view import Choice
from hansard_web.diff.page.words import Piece, word_diff
from hansard_web.ui.format import count, duration, plural
from hansard_web.ui.messages import headline

# Two prompts as bars of tokens, and the legend that says what each colour holds. Pure.


def token_bar(comparison: ItemComparison, *, of_previous: bool) -> tuple[Segment, ...]:
    whole = max(comparison.tokens, comparison.previous_tokens, 1)
    rows = [
        row for row in comparison.rows if (row.previous if of_previous else row.current) is not None
    ]
    if of_previous:
        rows.sort(key=lambda row: row.previous or 0)
    segments: list[Segment] = []
    at = 0.0
    for row in rows:
        tokens = row.previous_tokens if of_previous else row.tokens
        width = tokens / whole * 100
        css = _segment_css(row, of_previous=of_previous)
        last = segments[-1] if segments else None
        if last is not None and last.css == css and width < GAP_PCT * 2:
            # Slivers of one colour join: a thousand messages are a few dozen rectangles.
            segments[-1] = Segment(
                css, last.x_pct, round(at + width - last.x_pct, 3), "several messages"
            )
        else:
            shown = max(width - GAP_PCT, min(width, GAP_PCT))
            title = f"{row.change}, {count(tokens)} tokens"
            segments.append(Segment(css, round(at, 3), round(shown, 3), title))
        at += width
    return tuple(segments)


def _segment_css(row: ProvenanceRow, *, of_previous: bool) -> str:
    unchanged = row.change in (ItemChange.KEPT, ItemChange.REORDERED)
    if unchanged:
        return "tw-lost" if row.after_break else "tw-hit"
    if row.change is ItemChange.DROPPED:
        return "tw-gone"
    return "tw-chg" if of_previous else "tw-new"


def break_pct(comparison: ItemComparison) -> float | None:
    broken = comparison.cache_break
    if broken is None:
        return None
    whole = max(comparison.tokens, comparison.previous_tokens, 1)
    return round(broken.equal_tokens / whole * 100, 3)


def token_keys(comparison: ItemComparison, reading: StepReading) -> tuple[KeyEntry, ...]:
    def total(css: str, *, of_previous: bool) -> int:
        return sum(
            row.previous_tokens if of_previous else row.tokens
            for row in comparison.rows
            if (row.previous if of_previous else row.current) is not None
            and _segment_css(row, of_previous=of_previous) == css
        )

    call = reading.normal.call
    reported = call.tokens.cache_read if call else None
    rewritten = comparison.tokens_of(ItemChange.REWRITTEN, ItemChange.TRUNCATED)
    entries = (
        KeyEntry("tw-hit", "equal prefix", total("tw-hit", of_previous=False),
                 "" if reported is None else f"{count(reported)} reported as cached"),
        KeyEntry("tw-lost", "kept, cache lost", total("tw-lost", of_previous=False)),
        KeyEntry("tw-new", "new or changed", total("tw-new", of_previous=False),
                 f"{count(rewritten)} of them changed" if rewritten else ""),
        KeyEntry("tw-gone", "no longer sent", total("tw-gone", of_previous=True)),
        KeyEntry("tw-chg", "older version", total("tw-chg", of_previous=True)),
    )  # fmt: skip
    return tuple(entry for entry in entries if entry.tokens or entry.css == "tw-hit")


# One message of a comparison, looked at closely.


@dataclass(frozen=True, slots=True)
class _Inspected:
    """The message that is looked at closely."""

    title: str
    change: str
    place: str
    say: str
    pieces: tuple[Piece, ...]
    hint: str


def inspected(
    derived: DerivedContext, row: ProvenanceRow, *, title: str, position: str
) -> _Inspected:
    """Look closely at one row: its text, and what changed in it."""
    old = "" if row.previous is None else _text(derived.previous[row.previous])
    new = "" if row.current is None else _text(derived.current[row.current])
    return _Inspected(
        title=title,
        change=row.change.value,
        place=position,
        say=_say(row),
        pieces=word_diff(old, new) if row.previous is not None and row.current is not None
        else word_diff(new or old, new or old),
        hint=_hint(old, new) if row.change is ItemChange.REWRITTEN else "",
    )  # fmt: skip


def _say(row: ProvenanceRow) -> str:
    if row.change is ItemChange.KEPT and row.same_bytes:
        return "The same text as in the previous call."
    if row.change is ItemChange.KEPT:
        return "The same words in another form (ids, reasoning, space): another text to a cache."
    if row.change is ItemChange.REORDERED:
        return "The same text, at another place of the prompt."
    if row.change is ItemChange.ADDED:
        return "Not part of the previous call."
    if row.change is ItemChange.DROPPED:
        return "Part of the previous call, not of this one. Why is not known."
    if row.cut is not None:
        return f"{count(row.cut.characters)} characters of its {row.cut.kept} remain."
    return "Another version of the same message."


def _text(message: Message | None) -> str:
    return "" if message is None else text_of(message)


def _hint(old: str, new: str) -> str:
    """Point at what most often breaks a cache: a clock in a text that is otherwise the same."""
    changed = [piece.text for piece in word_diff(old, new) if piece.kind in ("del", "ins")]
    digits = sum(letter.isdigit() for text in changed for letter in text)
    letters = sum(letter.isalpha() for text in changed for letter in text)
    if digits and len(changed) <= 12 and letters <= 12 and len(new) > 200:
        return (
            "Only numbers changed, as with a clock or a counter. Put what changes into the last "
            "message and the rest can stay cached."
        )
    return ""


_SNIPPET_CHARS = 110
_ICONS = {"system": "system", "user": "user", "assistant": "llm", "tool": "tool"}
_CHANGES = tuple(ItemChange)


@dataclass(frozen=True, slots=True)
class ContextRow:
    """One message in the table."""

    anchor: str
    number: str
    change: str
    icon: str
    title: str
    snippet: str
    origin: str
    origin_href: str | None
    is_unknown: bool
    tokens: int
    previous_tokens: int | None  # where it differs
    cache: str  # read, lost, new, read anew, not sent
    starts_break: bool
    href: str
    is_selected: bool


@dataclass(frozen=True, slots=True)
class ContextView:
    """Everything the Context tab shows."""

    is_first: bool
    is_delta: bool
    counts: tuple[tuple[str, str], ...]  # ("6 messages kept", "kept")
    break_at: str | None  # anchor of the first message that differs
    break_number: str
    break_sentence: str
    run_breaks: RunBreaks | None
    is_short: bool  # the prompts part, but were too short to be cached
    lost_tokens: int
    has_bars: bool
    previous_bar: tuple[Segment, ...]
    current_bar: tuple[Segment, ...]
    break_pct: float | None
    previous_tokens: int
    tokens: int
    scaled: bool
    keys: tuple[KeyEntry, ...]
    choices: tuple[Choice, ...]
    rows: tuple[ContextRow, ...]
    shown: int
    of: int
    baseline_href: str | None
    baseline_text: str
    how: tuple[tuple[str, str], ...]
    inspected: _Inspected | None


def context_view(
    connection: apsw.Connection,
    placed: PlacedCall,
    step: StepSkeleton,
    reading: StepReading,
    *,
    run: int,
    address: str,
    only: str = "",
    item: str = "",
    with_run: bool = False,
) -> ContextView:
    """Compare a call with the one it continues and lay the comparison out.

    `only` names a kind of change to show, `item` the row to look at closely; `with_run` adds what
    cache breaks cost the whole run.
    """
    tools = list(reading.normal.call.tools) if reading.normal.call else []
    previous_tools = _tools_of(connection, placed)
    derived = derive_context(
        connection, placed, run=run, tools=tools, previous_tools=previous_tools
    )
    comparison = derived.comparison
    first_number = 0 if derived.tools else 1
    rows = _rows(derived, first_number, address=address, item=item)
    shown = [row for row in rows if only in ("", row.change)]
    broken = comparison.cache_break if comparison.cache_break else None
    tells = broken is not None and broken.cacheable
    return ContextView(
        is_first=placed.baseline is None,
        is_delta=placed.call.input_is_delta,
        counts=_counts(comparison, "item" if derived.tools else "message"),
        break_at=f"m{broken.position + first_number}" if broken and tells else None,
        break_number=str(broken.position + first_number) if broken else "",
        break_sentence=_break_sentence(placed, step),
        run_breaks=run_breaks(connection, run) if with_run else None,
        is_short=broken is not None and not broken.cacheable,
        lost_tokens=broken.lost_tokens if broken and tells else 0,
        has_bars=placed.baseline is not None and comparison.tokens > 0,
        previous_bar=token_bar(comparison, of_previous=True),
        current_bar=token_bar(comparison, of_previous=False),
        break_pct=break_pct(comparison) if tells else None,
        previous_tokens=comparison.previous_tokens,
        tokens=comparison.tokens,
        scaled=comparison.scaled,
        keys=token_keys(comparison, reading),
        choices=_choices(comparison, address, only),
        rows=tuple(shown),
        shown=len(shown),
        of=len(rows),
        baseline_href=f"/steps/{placed.baseline.step_id}" if placed.baseline else None,
        baseline_text=_baseline_text(placed),
        how=_how(placed, reading, comparison),
        inspected=_inspected(derived, rows, item),
    )


def _tools_of(connection: apsw.Connection, placed: PlacedCall) -> list[Json]:
    if placed.baseline is None:
        return []
    call = read_step(connection, placed.baseline.span).normal.call
    return list(call.tools) if call else []


# ------------------------------------------------------------------------------ sentences


def _counts(comparison: ItemComparison, one: str) -> tuple[tuple[str, str], ...]:
    found: list[tuple[str, str]] = []
    for change in _CHANGES:
        number = comparison.count(change)
        if number:
            words = f"{plural(number, one)} {change}" if not found else f"{number:,} {change}"
            found.append((words, change.value))
    return tuple(found)


def _break_sentence(placed: PlacedCall, step: StepSkeleton) -> str:
    baseline = placed.baseline
    if baseline is None:
        return ""
    if baseline.model != step.model:
        return f"The model changed as well, from {baseline.model} to {step.model}."
    return ""


def _baseline_text(placed: PlacedCall) -> str:
    baseline = placed.baseline
    if baseline is None:
        return ""
    age = duration(max(placed.call.sort_ns - baseline.sort_ns, 0))
    if placed.baseline_number is None:
        return f"{baseline.name} of an earlier run, {age} earlier"
    return f"call {placed.baseline_number} of {placed.of}, {age} earlier"


def _how(
    placed: PlacedCall, reading: StepReading, comparison: ItemComparison
) -> tuple[tuple[str, str], ...]:
    sources = reading.normal.call.sources if reading.normal.call else {}
    tokens = "4 characters a token"
    if comparison.scaled:
        tokens = f"estimated at {tokens}, scaled to the billed {count(comparison.tokens)}"
    facts = [
        ("matched by", "hash of each message, then call id, place and words"),
        ("chosen as previous", "the earlier call with the longest common beginning"),
        ("messages from", sources.get("input", "")),
        ("cached tokens from", sources.get("tokens.cache_read", "")),
        ("per message", tokens),
    ]
    return tuple((label, text) for label, text in facts if text)


def _choices(comparison: ItemComparison, address: str, only: str) -> tuple[Choice, ...]:
    join = "&" if "?" in address else "?"
    found = [Choice(f"All {len(comparison.rows)}", "", address, not only)]
    for change in _CHANGES:
        number = comparison.count(change)
        if number:
            label = f"{change.value.capitalize()} {number}"
            href = f"{address}{join}change={change}"
            found.append(Choice(label, change.value, href, only == change.value))
    return tuple(found)


# ------------------------------------------------------------------------------ rows


def _rows(
    derived: DerivedContext,
    first_number: int,
    *,
    address: str,
    item: str,
) -> list[ContextRow]:
    broken = derived.comparison.cache_break
    found = []
    for row in derived.comparison.rows:
        message = _message(derived, row)
        at = row.current if row.current is not None else row.previous or 0
        anchor = f"{'m' if row.current is not None else 'p'}{at + first_number}"
        is_break = broken is not None and broken.cacheable and row.current == broken.position
        join = "&" if "?" in address else "?"
        found.append(
            ContextRow(
                anchor=anchor,
                number="" if row.current is None else str(at + first_number),
                change=row.change.value,
                icon="tool" if message is None else _ICONS.get(message.role, "other"),
                title=_title(row, message, derived.tools),
                snippet=_snippet(row, message, derived.tools),
                origin=_origin_words(row.origin),
                origin_href=f"/steps/{row.origin.step_id}" if row.origin.step_id else None,
                is_unknown=row.origin.kind == "unknown",
                tokens=row.tokens,
                previous_tokens=row.previous_tokens
                if row.change in (ItemChange.REWRITTEN, ItemChange.TRUNCATED)
                and row.previous_tokens != row.tokens
                else None,
                cache=_cache_word(row, has_previous=bool(derived.previous)),
                starts_break=is_break,
                href=f"{address}{join}item={anchor}#{anchor}",
                is_selected=anchor == item,
            )
        )
    return found


def _message(derived: DerivedContext, row: ProvenanceRow) -> Message | None:
    if row.current is not None:
        return derived.current[row.current]
    return derived.previous[row.previous or 0]


def _title(row: ProvenanceRow, message: Message | None, tools: Sequence[Json]) -> str:
    if message is None:
        return plural(len(tools), "tool definition")
    title = headline(message)
    if title == "System prompt" and row.origin.kind != "system prompt":
        return "System"
    if title == "Tool result" and row.origin.step_name:
        return f"Result of {row.origin.step_name}"
    return title


def _snippet(row: ProvenanceRow, message: Message | None, tools: Sequence[Json]) -> str:
    if row.cut is not None:
        return f"cut: {count(row.cut.characters)} characters of its {row.cut.kept} remain"
    if message is None:
        names = [str(tool.get("name", "")) for tool in tools]
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        return ", ".join(names[:3]) + more
    text = message.text or text_of(message)
    note = "same words, other ids or reasoning · " if _is_other_form(row) else ""
    line = " ".join(text[: _SNIPPET_CHARS * 4].split())
    return note + (line if len(line) <= _SNIPPET_CHARS else line[: _SNIPPET_CHARS - 1] + "…")


def _is_other_form(row: ProvenanceRow) -> bool:
    return row.change in (ItemChange.KEPT, ItemChange.REORDERED) and not row.same_bytes


def _origin_words(origin: Origin) -> str:
    if origin.kind in ("output", "result", "memory"):
        name = (origin.step_name or "a step")[:40]
        return {"output": "output of", "result": "result of", "memory": "memory of"}[
            origin.kind
        ] + f" {name}"
    return origin.kind


def _cache_word(row: ProvenanceRow, *, has_previous: bool) -> str:
    if row.change is ItemChange.DROPPED:
        return "not sent"
    if row.change is ItemChange.ADDED or not has_previous:
        return "new"
    if row.change in (ItemChange.REWRITTEN, ItemChange.TRUNCATED) or not row.same_bytes:
        return "read uncached"
    return "lost" if row.after_break else "equal"


def _inspected(derived: DerivedContext, rows: Sequence[ContextRow], item: str) -> _Inspected | None:
    """Look at the row that was requested, else at the one that breaks the cache."""
    chosen = next((at for at, row in enumerate(rows) if row.anchor == item), None)
    if chosen is None:
        chosen = next((at for at, row in enumerate(rows) if row.starts_break), None)
    if chosen is None:
        return None
    shown = rows[chosen]
    position = f"message {shown.number}" if shown.number else "of the previous call"
    return inspected(derived, derived.comparison.rows[chosen], title=shown.title, position=position)
