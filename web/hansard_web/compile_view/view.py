"""A compile laid out: the sentence, the bar, the passes, the table, the item, what was sent."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import apsw

from hansard_collector.derivation.stored_span import read_step
from hansard_store.compilations.queries import (
    Compilation,
    compilation_after,
    compilation_before,
    policy_spans_of,
)
from hansard_store.compilations.receipts import StoredReceipt
from hansard_store.content.payloads import (
    Payload,
    folder_of,
    payload_ref,
    peek_payload,
    read_payload,
)
from hansard_store.errors import PayloadAlteredError, StoreCorruptError
from hansard_store.steps.queries import StepSkeleton
from hansard_web.compile_view.bar import BudgetBar, KeyEntry, Segment, item_segments, rest_segments
from hansard_web.compile_view.item import Inspected, inspect_item
from hansard_web.compile_view.labels import (
    DECISIONS,
    SECTIONS,
    SWATCHES,
    kind_words,
    meaning,
    pass_words,
)
from hansard_web.compile_view.passes import PassDid, passes_did
from hansard_web.compile_view.record import CompileRecord, read_record, stored_payload
from hansard_web.compile_view.result import any_json
from hansard_web.compile_view.rows import Listing, listing, receipts_href
from hansard_web.compile_view.state import GROUPS, ORDERS, PAGE_ROWS, ContextState
from hansard_web.ui.format import count, file_size, plural, shorten
from hansard_web.ui.json_tree import JsonNode, json_tree, parsed

# The policy checks of one compile, as the spans below it tell them, in arrays of equal length.

_MOST: Final = 50  # of those that are shown one by one
_EFFECTS: Final[Mapping[str, str]] = {
    "allow": "allowed",
    "deny": "denied",
    "redact": "redacted",
    "require_approval": "asked for approval",
    "require_receipt": "asked for a receipt",
}
_REASONS: Final[Mapping[str, str]] = {
    "rule": "",
    "default": "by default: no rule fitted",
    "condition_error": "a condition could not be judged, which denies",
}
_PREFIX: Final = "hansard.policy."


@dataclass(frozen=True, slots=True)
class _Check:
    """One check that did more than allow."""

    effect: str
    word: str
    subject: str
    rule: str
    href: str  # receipts of the rule
    say: str


@dataclass(frozen=True, slots=True)
class _Checks:
    """What policy decided during a compile."""

    say: str
    rows: tuple[_Check, ...]
    left_out: int


def checks_of(
    connection: apsw.Connection, made: Compilation, receipts: list[StoredReceipt]
) -> _Checks:
    """Return the checks of a compile; where no span reports them, what its receipts show."""
    checks = [
        one
        for span in policy_spans_of(connection, made)
        for one in _reported_checks(read_step(connection, span).view.attributes)
    ]
    if not checks:
        return _from_receipts(receipts)
    counts = Counter(effect for effect, *_ in checks)
    parts = ", ".join(f"{number:,} {_EFFECTS.get(name, name)}" for name, number in counts.items())
    rows = [_row(*one) for one in checks if one[0] != "allow"]
    return _Checks(
        f"{plural(len(checks), 'check')}: {parts}.", tuple(rows[:_MOST]), max(len(rows) - _MOST, 0)
    )


def _reported_checks(attributes: Mapping[str, Any]) -> Iterator[tuple[str, str, str, str, str]]:
    """Yield effect, subject, rule, version and reason of each check that a span reports."""
    effects = _texts(attributes, "effects")
    columns = [_texts(attributes, name) for name in ("subjects", "rule_ids", "versions", "reasons")]
    for at, effect in enumerate(effects):
        subject, rule, version, reason = (
            column[at] if len(column) == len(effects) else "" for column in columns
        )
        yield effect, subject, rule, version, reason


def _texts(attributes: Mapping[str, Any], name: str) -> list[str]:
    value = attributes.get(_PREFIX + name)
    return [str(one) for one in value] if isinstance(value, list) else []


def _row(effect: str, subject: str, rule: str, version: str, reason: str) -> _Check:
    return _Check(
        effect=effect,
        word=_EFFECTS.get(effect, effect),
        subject=subject,
        rule=f"{rule} v{version}" if rule and version else rule,
        href=receipts_href(rule=rule) if rule else "",
        say=_REASONS.get(reason, reason),
    )


def _from_receipts(receipts: list[StoredReceipt]) -> _Checks:
    held: dict[str, Counter[str]] = {}
    for one in receipts:
        for rule in one.rules:
            held.setdefault(rule, Counter())[one.decision] += 1
    rows = [
        _Check("", "held", "", rule, receipts_href(rule=rule), _policy_checks_shown(counts))
        for rule, counts in held.items()
    ]
    say = "No check was reported; these rules are in the receipts." if rows else ""
    return _Checks(say, tuple(rows[:_MOST]), max(len(rows) - _MOST, 0))


def _policy_checks_shown(counts: Counter[str]) -> str:
    return ", ".join(
        f"{plural(number, 'item')} {DECISIONS.get(name, name)}" for name, number in counts.items()
    )


# What a compile's table is filtered, ordered and turned with: links, each with its address.


@dataclass(frozen=True, slots=True)
class Choice:
    """A filter that shows rows of one kind."""

    label: str
    icon: str
    href: str
    is_on: bool


@dataclass(frozen=True, slots=True)
class _Chip:
    """A filter that is on."""

    label: str
    value: str
    href: str  # of the page without it


@dataclass(frozen=True, slots=True)
class Sort:
    """A column that the table can be ordered by."""

    label: str
    href: str
    aria: str  # ascending descending none


@dataclass(frozen=True, slots=True)
class Paging:
    """The pages before and after."""

    say: str
    previous_href: str | None
    next_href: str | None


def choices(
    counts: Sequence[tuple[str, str, int]], total: int, state: ContextState, path: str
) -> tuple[Choice, ...]:
    """Return the filters by decision, with how many each would show."""
    found = [
        Choice(f"All {count(total)}", "", state.address(path, decision=""), not state.decision)
    ]
    for name, word, number in counts:
        if number or state.decision == name:
            label = f"{word.capitalize()} {count(number)}"
            href = state.address(path, decision=name)
            icon = name if name in DECISIONS else "other"
            found.append(Choice(label, icon, href, state.decision == name))
    return tuple(found)


def chips(state: ContextState, path: str) -> tuple[_Chip, ...]:
    """Return the filters that are on; of decisions only a word that none of the choices shows."""
    odd = state.decision not in ("", *DECISIONS)
    found = (
        ("decision", f"“{state.decision}”" if odd else "", {"decision": ""}),
        ("reason", meaning(state.reason) if state.reason else "", {"reason": ""}),
        ("pass", pass_words(state.at_pass), {"at_pass": ""}),
        ("kind", kind_words(state.kind) if state.kind else "", {"kind": ""}),
        ("with", f"“{state.find}”" if state.find else "", {"find": ""}),
    )
    return tuple(
        _Chip(label, value, state.address(path, **without))
        for label, value, without in found
        if value
    )


def sorts(state: ContextState, path: str) -> dict[str, Sort]:
    """Return the columns that the table can be ordered by; a second time turns the order."""
    found = {}
    for order, label in (("item", "Item and source"), ("tokens", "Tokens"), ("score", "Score"),
                         ("missed", "Why")):  # fmt: skip
        is_on = state.order == order
        turned = is_on and not state.is_reversed
        ascends = (order in ("item", "missed")) != state.is_reversed
        aria = ("ascending" if ascends else "descending") if is_on else "none"
        found[order] = Sort(label, state.address(path, order=order, is_reversed=turned), aria)
    return found


def paging(listed: Listing, state: ContextState, path: str) -> Paging | None:
    """Return the ways to the other pages; None where there is only one."""
    if listed.found <= PAGE_ROWS:
        return None
    last = listed.first + listed.shown

    def at(first: int) -> str:
        return state.address(path, first=first, item="")

    return Paging(
        say=f"{count(listed.first + 1)} to {count(last)} of {count(listed.found)}",
        previous_href=at(max(listed.first - PAGE_ROWS, 0)) if listed.first else None,
        next_href=at(last) if last < listed.found else None,
    )


# What was sent, as far as it is stored: the compiled request, and the bytes of the model call.

_PREVIEW_BYTES: Final = 16 * 1024
_PARSED_BYTES: Final = 1024 * 1024
_SENT_KEY: Final = "hansard.request.ref"


@dataclass(frozen=True, slots=True)
class _Shown:
    """One form of the request: a bounded look at it, and all its bytes."""

    title: str
    say: str
    href: str  # of the exact bytes; "" where they are not here
    ref: str
    size: str
    tree: JsonNode | None = None
    text: str = ""  # where it is no JSON, or too much of it
    is_cut: bool = False


def shown_requests(
    connection: apsw.Connection, record: CompileRecord, *, whole: bool
) -> tuple[_Shown, ...]:
    """Return what is stored of the request, the bytes that were sent first.

    `whole` adds a look at it; without, there is only where its bytes are.
    """
    return (
        *_sent(connection, record, whole=whole),
        *_compiled(record, whole=whole),
    )


def _sent(connection: apsw.Connection, record: CompileRecord, *, whole: bool) -> Iterator[_Shown]:
    for call in record.calls[:1]:
        attributes = read_step(connection, call.id).view.attributes
        ref = attributes.get(_SENT_KEY)
        if not isinstance(ref, str):
            continue
        payload = stored_payload(connection, ref)
        title = f"Sent by {call.name}"
        if payload is None:
            yield _Shown(title, "Its bytes are not here: withheld, lost, or on their way.", "",
                        ref[:80], "not stored")  # fmt: skip
        else:
            yield _wire(connection, payload, title, ref, whole=whole)


def _wire(
    connection: apsw.Connection, payload: Payload, title: str, ref: str, *, whole: bool
) -> _Shown:
    say = "The bytes that left for the provider."
    if payload.redacted:
        say = "The bytes that left for the provider, but for secrets that were taken out."
    folder = folder_of(connection)
    value: Any = None
    try:
        if whole and payload.size <= _PARSED_BYTES:
            value = parsed(read_payload(folder, payload).decode("utf-8", "replace"))
        head = peek_payload(folder, payload, most_bytes=_PREVIEW_BYTES if whole else 0)
    except PayloadAlteredError:
        return _Shown(
            title, "Its stored bytes were altered; they are not shown.", "", ref, "altered"
        )
    except StoreCorruptError:
        return _Shown(title, "The file of its bytes is gone.", "", ref, "not stored")
    is_json = isinstance(value, dict | list)
    text = head.decode("utf-8", "replace")
    return _Shown(
        title=title,
        say=say,
        href=f"/v1/payloads/{ref}",
        ref=ref,
        size=file_size(payload.size),
        tree=json_tree(value) if is_json else None,
        text="" if is_json or "\0" in text else text,
        is_cut=whole and not is_json and payload.size > _PREVIEW_BYTES,
    )


def _compiled(record: CompileRecord, *, whole: bool) -> Iterator[_Shown]:
    result = record.result
    if result.rendered is None:
        return
    yield _Shown(
        title="As compiled",
        say="Before the provider's own form: system, tools, messages, and where sections end.",
        href=f"/v1/payloads/{result.ref}",
        ref=result.ref,
        size=f"{file_size(result.size)}, with all receipts",
        tree=json_tree(result.rendered) if whole else None,
    )


# How an item begins, for those whose id says nothing: ids that were made of a hash.

# Ids that were made of a hash, and those of memory records.
_MADE_ID: Final = re.compile(r"[a-z_]+:[0-9a-f]{16}(#[0-9]+)?|[0-9a-f]{32}", re.ASCII)
_PEEK_BYTES: Final = 4_096
_CHARS: Final = 100
_FIRST_TEXT: Final = re.compile(r'"(?:text|content)":"((?:[^"\\]|\\.)*)')


def spoken_words(connection: apsw.Connection, one: StoredReceipt) -> str:
    """Return the first words of an item whose id is a hash; "" for any other, or without text."""
    if one.original is None or not _MADE_ID.fullmatch(one.item_id):
        return ""
    payload = stored_payload(connection, payload_ref(one.original))
    if payload is None:
        return ""
    try:
        head = peek_payload(folder_of(connection), payload, most_bytes=_PEEK_BYTES)
    except StoreCorruptError:
        return ""
    text = head.decode("utf-8", "replace")
    if text.startswith("{"):
        text = _of_message(head, text)
    return "" if "\0" in text else shorten(text, _CHARS)


def _of_message(head: bytes, text: str) -> str:
    message = any_json(head)
    parts = message.get("parts") if isinstance(message, dict) else None
    texts = [_of_part(part) for part in parts] if isinstance(parts, list) else []
    if any(texts):
        return " ".join(one for one in texts if one)
    found = _FIRST_TEXT.search(text)
    return found[1] if found else text


def _of_part(part: Any) -> str:
    if not isinstance(part, dict):
        return ""
    for key in ("text", "content", "name"):
        if isinstance(part.get(key), str):
            return str(part[key])
    return ""


# The parts of a prompt with their hashes, beside those of the compile before.


@dataclass(frozen=True, slots=True)
class SectionRow:
    """A part of the prompt; `same` None: there is nothing to compare it with."""

    label: str
    swatch: str
    items: int
    tokens: int
    hash: str  # "" where it is unknown
    same: bool | None


def section_rows(record: CompileRecord, before: Compilation | None) -> tuple[SectionRow, ...]:
    """Return the parts of the prompt; hashes come from the stored result, else from the span."""
    row = record.compilation.row
    stored = {section.name: section.hash for section in record.result.sections}
    hashes = {
        "stable_prefix": row.stable_prefix_hash or stored.get("stable_prefix", ""),
        "task_context": stored.get("task_context", ""),
        "volatile_suffix": row.volatile_suffix_hash or stored.get("volatile_suffix", ""),
    }
    earlier = {
        "stable_prefix": before.row.stable_prefix_hash if before else None,
        "volatile_suffix": before.row.volatile_suffix_hash if before else None,
    }
    found = []
    for name, label in SECTIONS.items():
        of_it = [
            one for one in record.receipts if one.section == name and one.decision != "exclude"
        ]
        then = earlier.get(name)
        found.append(
            SectionRow(
                label=label,
                swatch=SWATCHES[name],
                items=len(of_it),
                tokens=sum(one.tokens_after or 0 for one in of_it),
                hash=hashes[name],
                same=None if then is None or not hashes[name] else then == hashes[name],
            )
        )
    return tuple(found)


_MOST_NAMED: Final = 4  # items in a note
_NAME_CHARACTERS: Final = 80


@dataclass(frozen=True, slots=True)
class Cached:
    """What the provider read from its cache, on the bar."""

    tokens: int
    end_pct: float


@dataclass(frozen=True, slots=True)
class Related:
    """A step that belongs to the compile: itself, or a call that was made with it."""

    label: str
    step: StepSkeleton
    href: str
    is_this: bool


@dataclass(frozen=True, slots=True)
class NativeView:
    """Everything the native Context tab shows."""

    compilation: Compilation
    path: str
    state: ContextState
    pairs: tuple[tuple[str, str], ...]  # what a form must keep of the address
    counts: tuple[tuple[str, str, int], ...]  # (decision, words, number)
    budget: BudgetBar
    used_text: str
    bar_label: str
    segments: tuple[Segment, ...]
    rest: tuple[Segment, ...]
    cached: Cached | None
    keys: tuple[KeyEntry, ...]
    billed: str
    passes: tuple[PassDid, ...]
    choices: tuple[Choice, ...]
    chips: tuple[_Chip, ...]
    sorts: dict[str, Sort]
    orders: tuple[tuple[str, str], ...]
    groups: tuple[tuple[str, str], ...]
    listing: Listing
    paging: Paging | None
    inspected: Inspected | None
    sections: tuple[SectionRow, ...]
    previous_href: str | None  # the compile before in this run
    next_href: str | None
    by_class: tuple[tuple[str, int], ...]
    checks: _Checks
    requests: tuple[_Shown, ...]
    requests_href: str  # of the page with them unfolded, or folded again
    related: tuple[Related, ...]
    notes: tuple[str, ...]

    def item_href(self, item_id: str) -> str:
        return self.state.address(self.path, item=item_id, text="changes")

    def pass_href(self, name: str) -> str:
        return self.state.address(self.path, at_pass=name, item="")


def native_view(
    connection: apsw.Connection,
    compilation: Compilation,
    step: StepSkeleton,
    state: ContextState,
    *,
    now_ns: int,
) -> NativeView:
    """Read a compile and lay it out for one of its steps: the compile itself, or its call."""
    record = read_record(connection, compilation, now_ns=now_ns)
    path = f"/steps/{step.step_id}/context"
    listed = listing(record, state, path, spoken=lambda one: spoken_words(connection, one))
    state = state.but(first=listed.first)
    before = compilation_before(connection, compilation)
    after = compilation_after(connection, compilation)
    budget, sent = record.budget, record.sent()
    result = record.result
    return NativeView(
        compilation=compilation,
        path=path,
        state=state,
        pairs=tuple(pair for pair in state.pairs() if pair[0] in _KEPT),
        counts=_decision_counts(record),
        budget=budget,
        used_text=_used_text(budget),
        bar_label=_bar_label(record, budget),
        segments=item_segments(sent, budget, selected=state.item),
        rest=rest_segments(budget),
        cached=_cached(record, budget),
        keys=_keys(record, budget, before),
        billed=_billed(record, budget),
        passes=passes_did(record),
        choices=choices(_decision_counts(record), len(record.receipts), state, path),
        chips=chips(state, path),
        sorts=sorts(state, path),
        orders=tuple(ORDERS.items()),
        groups=tuple(GROUPS.items()),
        listing=listed,
        paging=paging(listed, state, path),
        inspected=inspect_item(connection, record, state, path),
        sections=section_rows(record, before),
        previous_href=f"/steps/{before.step_id}/context" if before else None,
        next_href=f"/steps/{after.step_id}/context" if after else None,
        by_class=tuple((name, tokens) for name, tokens in result.by_class.items() if tokens),
        checks=checks_of(connection, compilation, record.receipts),
        requests=shown_requests(connection, record, whole=state.shows_request),
        requests_href=state.address(path, shows_request=not state.shows_request) + "#request",
        related=_related(record, step),
        notes=_notes(record),
    )


_KEPT: Final = ("decision", "reason", "pass", "kind")


# ------------------------------------------------------------------------------ sentences


def _decision_counts(record: CompileRecord) -> tuple[tuple[str, str, int], ...]:
    counts = Counter(one.decision for one in record.receipts)
    known = [(name, word, counts.pop(name, 0)) for name, word in DECISIONS.items()]
    return (*known, *((name, name, number) for name, number in counts.items()))


def _used_text(budget: BudgetBar) -> str:
    if budget.available is None:
        return f"{count(budget.used)} tokens; their budget is not recorded"
    return f"{count(budget.used)} of {count(budget.available)}"


def _bar_label(record: CompileRecord, budget: BudgetBar) -> str:
    parts = [f"{entry.label} {count(entry.tokens)}" for entry in _keys(record, budget, None)]
    whole = "unknown size" if budget.tokens is None else plural(budget.tokens, "token")
    return f"Budget of {whole}: {', '.join(parts)}"


def _notes(record: CompileRecord) -> tuple[str, ...]:
    row = record.compilation.row
    notes = row.notes.split("\n") if row.notes else []
    if row.receipt_count < row.item_total:
        notes.append(
            f"receipts of {count(row.receipt_count)} of {count(row.item_total)} candidates are here"
        )
    if record.result_trouble:
        notes.append(f"{record.result_trouble} Score terms, notes and sections are missing.")
    if doubtful := record.result.doubtful:
        more = len(doubtful) - _MOST_NAMED
        named = ", ".join(one[:_NAME_CHARACTERS] for one in doubtful[:_MOST_NAMED])
        notes.append(
            f"{plural(len(doubtful), 'item')} may contradict another one; both are kept: {named}"
            + (f" and {count(more)} more" if more > 0 else "")
        )
    return tuple(note[:1].upper() + note[1:] for note in dict.fromkeys(notes))


# ------------------------------------------------------------------------------ the bar


def _keys(
    record: CompileRecord, budget: BudgetBar, before: Compilation | None
) -> tuple[KeyEntry, ...]:
    tokens: Counter[str] = Counter()
    for one in record.receipts:
        if one.decision != "exclude":
            tokens[one.section or ""] += one.tokens_after or 0
    row = record.compilation.row
    entries = []
    for name, label in SECTIONS.items():
        aside = ""
        if name == "stable_prefix" and before is not None and row.stable_prefix_hash:
            same = before.row.stable_prefix_hash == row.stable_prefix_hash
            aside = "same bytes as last turn" if same else "changed since last turn"
        entries.append(KeyEntry(SWATCHES[name], label.lower(), tokens.pop(name, 0), aside))
    if rest := sum(tokens.values()):
        entries.append(KeyEntry("task", "in no section", rest))
    if budget.free is not None:
        over = "over the budget" if budget.free < 0 else ""
        entries.append(KeyEntry("free", "free", budget.free, over))
    if budget.reserve is not None:
        entries.append(KeyEntry("reserve", "kept for the answer", budget.reserve))
    return tuple(entries)


def _cached(record: CompileRecord, budget: BudgetBar) -> Cached | None:
    for call in record.calls[:1]:
        read = call.tokens.cache_read if call.tokens else None
        if read:
            return Cached(read, round(min(read / budget.whole, 1) * 100, 3))
    return None


def _billed(record: CompileRecord, budget: BudgetBar) -> str:
    """Return how the estimate compares with what the provider counted."""
    for call in record.calls[:1]:
        billed = call.tokens.input if call.tokens else None
        if billed:
            off = (budget.used - billed) / billed * 100
            way = "under" if off < 0 else "over"
            return f"{count(billed)} billed, the estimate is {abs(off):.1f}% {way}"
    by = {"counted": record.result.counter, "rated": record.result.scorer}
    return ", ".join(f"{what} by {one}" for what, one in by.items() if one)


# ------------------------------------------------------------------------------ what belongs to it


def _related(record: CompileRecord, step: StepSkeleton) -> tuple[Related, ...]:
    found = [("compiled by", record.step), *(("sent by", call) for call in record.calls)]
    return tuple(
        Related(label, one, f"/steps/{one.step_id}/context", one.id == step.id)
        for label, one in found
    )
