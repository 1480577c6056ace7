"""Two prompts as bars of tokens, and the legend that says what each colour holds. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from hansard_collector.derivation.stored_span import StepReading
from hansard_collector.derived_context.provenance import Change, Comparison, Row
from hansard_web.ui.format import count

_GAP_PCT = 0.08  # air between the segments of a bar


@dataclass(frozen=True, slots=True)
class Segment:
    """A message's share of a bar."""

    css: str
    x_pct: float
    width_pct: float
    title: str


@dataclass(frozen=True, slots=True)
class KeyEntry:
    """A line of the legend."""

    css: str
    label: str
    tokens: int
    aside: str = ""


def token_bar(comparison: Comparison, *, of_previous: bool) -> tuple[Segment, ...]:
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
        if last is not None and last.css == css and width < _GAP_PCT * 2:
            # Slivers of one colour join: a thousand messages are a few dozen rectangles.
            segments[-1] = Segment(
                css, last.x_pct, round(at + width - last.x_pct, 3), "several messages"
            )
        else:
            shown = max(width - _GAP_PCT, min(width, _GAP_PCT))
            title = f"{row.change}, {count(tokens)} tokens"
            segments.append(Segment(css, round(at, 3), round(shown, 3), title))
        at += width
    return tuple(segments)


def _segment_css(row: Row, *, of_previous: bool) -> str:
    unchanged = row.change in (Change.KEPT, Change.REORDERED)
    if unchanged:
        return "tw-lost" if row.after_break else "tw-hit"
    if row.change is Change.DROPPED:
        return "tw-gone"
    return "tw-chg" if of_previous else "tw-new"


def break_pct(comparison: Comparison) -> float | None:
    broken = comparison.cache_break
    if broken is None:
        return None
    whole = max(comparison.tokens, comparison.previous_tokens, 1)
    return round(broken.equal_tokens / whole * 100, 3)


def token_keys(comparison: Comparison, reading: StepReading) -> tuple[KeyEntry, ...]:
    def total(css: str, *, of_previous: bool) -> int:
        return sum(
            row.previous_tokens if of_previous else row.tokens
            for row in comparison.rows
            if (row.previous if of_previous else row.current) is not None
            and _segment_css(row, of_previous=of_previous) == css
        )

    call = reading.normal.call
    reported = call.tokens.cache_read if call else None
    rewritten = comparison.tokens_of(Change.REWRITTEN, Change.TRUNCATED)
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
