"""A compile span read: the compile as a whole, and its receipts column by column (DESIGN §9).

A sender can send any columns: what is missing, of the wrong type or of another length
is named in the notes, and nothing of it fails. A row that would be an exclusion without a reason,
or an inclusion without a source, is left out and counted: it is no receipt.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import compress
from struct import iter_unpack
from typing import Any, NamedTuple

import apsw
import orjson

from hansard_collector.dialects.engine.item_views import SpanView
from hansard_compiler.errors import NotFoundError
from hansard_store.compilations.queries import ID_KEY, RECEIPT_COLUMNS
from hansard_store.compilations.receipts import (
    FACET_KEYS,
    ITEMS_KEY,
    MOST_NAME_CHARS,
    MOST_TEXT_CHARS,
    SOURCE_TYPES,
    SOURCES_KEY,
)
from hansard_store.content.payloads import folder_of, get_payload, parse_payload_ref, read_payload
from hansard_store.errors import InvalidQueryError, StoreCorruptError
from hansard_store.ingest.derived_rows import CompilationProjection, CompilationRow, SpanProjection
from hansard_store.search.attributes import tokens_of

MOST_RECEIPTS = 50_000  # of one compile; ten times what the compiler is made for
SCHEMA_VERSION = "1"  # of hansard.*, as this module reads it
_NANO = 1_000_000_000
_TIMES_NANO = float(_NANO).__mul__
_MOST_INT = 1 << 53  # larger numbers are no token counts, and JSON does not hold them exactly
_MOST_SCORE = 1_000_000  # points; a float holds their billionths below 2^53
_MOST_SCORE_NANO = _MOST_SCORE * _NANO
_NAME_CHARS, _ID_CHARS, _TEXT_CHARS = MOST_NAME_CHARS, MOST_TEXT_CHARS, MOST_TEXT_CHARS
_RULES_CHARS = 4_096  # of all rules that hold for one item
_REF_CHARS = len("sha256:") + 64
_SOURCE_TYPES = frozenset(SOURCE_TYPES)
_WITHHELD = "‹withheld:"
_ITEM = "hansard.item."
_COMPILATION = "hansard.compilation."

Columns = Mapping[str, Any]  # name without `hansard.item.` -> what was sent under it


def compilation_of(view: SpanView) -> CompilationProjection | None:
    """Return what a compile span states; None for one that names no compilation. Never raises."""
    made_id = view.attributes.get(ID_KEY)
    if not isinstance(made_id, str) or not made_id:
        return None
    columns = {name: view.attributes.get(_ITEM + name) for name in _READ}
    blank = _row(view, made_id[:_ID_CHARS])
    notes = [] if blank.schema_version is None else [_other_version(blank.schema_version)]
    total = _int(view.attributes.get(_ITEM + "total"))
    return with_receipts(blank, columns, total=total, notes=notes)


def with_receipts(
    row: CompilationRow, columns: Columns, *, total: int | None, notes: Iterable[str] = ()
) -> CompilationProjection:
    """Return a compile with the receipts that these columns hold."""
    problems = list(notes)
    read = _read(columns, problems)
    valid = _without_broken(read, problems)
    decisions = Counter(valid["decisions"])
    count = len(valid["ids"])
    item_total = max(count, len(read["ids"]), total or 0)
    row = row._replace(
        item_total=item_total,
        receipt_count=count,
        included=decisions["include"],
        excluded=decisions["exclude"],
        compressed=decisions["compress"],
        redacted=decisions["redact"],
        notes="\n".join(problems) or None,
    )
    return CompilationProjection(row, tuple(valid[name] for name in _WRITTEN))


def found_beside(made: CompilationProjection) -> Mapping[str, list[str]]:
    """Return what receipts are searched by and the span's attributes do not hold in these words.

    Rules and types of sources stand in longer texts there. Where a value was cut, or is of a
    source that is not known here, the receipts are found by what is stored of them.
    """
    columns = _columns(made)
    types = set(columns["source_type"])
    if made.row.notes is None and types <= _SOURCE_TYPES:
        return _in_longer_texts(columns)
    return found_by(made)


def found_by(made: CompilationProjection) -> Mapping[str, list[str]]:
    """Return all that receipts are searched by, as it is stored."""
    columns = _columns(made)
    named = {FACET_KEYS[name]: columns[name] for name in ("kind", "decision", "pass", "reason")}
    unique = {key: list(dict.fromkeys(column)) for key, column in named.items()}
    places = list(zip(columns["source_type"], columns["source"], strict=True))
    lines = [" ".join(part for part in both if part) for both in places]
    lines += {source for kind, source in places if source and kind not in _SOURCE_TYPES}
    items = list(columns["item_id"])
    return {ITEMS_KEY: items, SOURCES_KEY: lines, **unique, **_in_longer_texts(columns)}


def _columns(made: CompilationProjection) -> Mapping[str, Sequence[Any]]:
    return dict(zip(RECEIPT_COLUMNS, made.receipts, strict=True))


def _in_longer_texts(columns: Mapping[str, Sequence[Any]]) -> Mapping[str, list[str]]:
    rules = {rule for rules in set(columns["rule_ids"]) if rules for rule in rules.split(",")}
    types = set(columns["source_type"]) - {None}
    return {FACET_KEYS["rule"]: sorted(rules), FACET_KEYS["source_type"]: sorted(types)}


def _row(view: SpanView, made_id: str) -> CompilationRow:
    attributes = view.attributes

    def text(name: str) -> str | None:
        value = attributes.get(_COMPILATION + name)
        return value[:_ID_CHARS] if isinstance(value, str) and value else None

    version = attributes.get("hansard.schema_version", SCHEMA_VERSION)
    return CompilationRow(
        id=made_id,
        hash=text("hash"),
        stable_prefix_hash=text("stable_prefix_hash"),
        volatile_suffix_hash=text("volatile_suffix_hash"),
        provider=text("provider"),
        model=text("model"),
        budget_tokens=_int(attributes.get(_COMPILATION + "budget.tokens")),
        budget_reserve=_int(attributes.get(_COMPILATION + "budget.reserve")),
        budget_used=_int(attributes.get(_COMPILATION + "budget.used")),
        counter=text("counter"),
        ports=_joined(attributes.get(_COMPILATION + "ports")),
        request_ref=text("request_ref"),
        result_ref=text("result_ref"),
        schema_version=None if version == SCHEMA_VERSION else str(version)[:_NAME_CHARS],
        started_ns=view.start_ns if 0 < view.start_ns < 1 << 63 else 0,
        item_total=0,
        receipt_count=0,
        included=0,
        excluded=0,
        compressed=0,
        redacted=0,
        notes=None,
    )


def _joined(names: Any) -> str | None:
    return (_joined_rules(names) or "")[:_ID_CHARS] or None


def _other_version(version: str) -> str:
    return f"sent in version {version!r} of hansard.*, read as version {SCHEMA_VERSION!r}"


# ---- columns


def _read(columns: Columns, notes: list[str]) -> dict[str, Sequence[Any]]:
    """Return every column as it will be stored, all of one length."""
    ids = columns["ids"]
    if not isinstance(ids, list):
        if ids is not None:
            notes.append("hansard.item.ids is no list: there are no receipts")
        ids = []
    if len(ids) > MOST_RECEIPTS:
        notes.append(f"only the first {MOST_RECEIPTS:,} of {len(ids):,} receipts are kept")
    length, count = len(ids), min(len(ids), MOST_RECEIPTS)
    read: dict[str, Sequence[Any]] = {"ordinals": range(count)}
    for name, clean in _READ.items():
        sent = columns[name]
        if not isinstance(sent, list) or len(sent) != length:
            read[name] = _unfit(name, sent, count=count, notes=notes)
            continue
        read[name], wrong, too_long = clean(sent[:count] if count < length else sent)
        if wrong:
            notes.append(f"hansard.item.{name}: {wrong:,} values of a wrong type left out")
        if too_long:
            notes.append(f"hansard.item.{name}: {too_long:,} values too long, cut")
    read["source_types"], read["sources"] = _split_sources(read["sources"])
    return read


def _unfit(name: str, sent: Any, *, count: int, notes: list[str]) -> list[str | None]:
    """Return a column in place of one that has nothing on the items."""
    if isinstance(sent, str) and sent.startswith(_WITHHELD):  # the retention mode left its length
        return [sent if name == "sources" else None] * count
    if sent is not None:
        held = f"holds {len(sent):,}" if isinstance(sent, list) else "is no list"
        notes.append(f"hansard.item.{name} {held}, for {count:,} items: left out")
    return [None] * count


def _without_broken(
    columns: dict[str, Sequence[Any]], notes: list[str]
) -> dict[str, Sequence[Any]]:
    """Leave out what is no receipt: without an id, a decision or a reason, or of no source."""
    needed = [columns[name] for name in ("ids", "decisions", "reasons", "source_types")]
    if not any(None in column for column in needed):
        return columns  # nothing is broken: by far the most
    broken = [_broken(*row) for row in zip(*needed, strict=True)]
    counts = Counter(why for why in broken if why is not None)
    notes += [f"{number:,} receipts left out: {why}" for why, number in counts.items()]
    chosen = [why is None for why in broken]
    return {name: list(compress(column, chosen)) for name, column in columns.items()}


def _broken(
    item_id: str | None, decision: str | None, reason: str | None, source_type: str | None
) -> str | None:
    if item_id is None:
        return "without an item"
    if decision is None:
        return "without a decision"
    if reason is None:
        return "without a reason"
    if source_type is None and decision != "exclude":
        return "not excluded, and without a source"
    return None


class _Cleaned(NamedTuple):
    """A column as it is stored, and how many of its values are not as they were sent."""

    column: Sequence[Any]
    wrong: int  # of a wrong type, left out
    too_long: int = 0


def _texts(
    most_chars: int, *, is_repeated: bool = False, cut: Callable[[str], str] | None = None
) -> Callable[[list[Any]], _Cleaned]:
    """Return what cleans a column; of one with few values over and over, only those."""
    shorten = cut or (lambda value: value[:most_chars])

    def clean(sent: list[Any]) -> _Cleaned:
        values, wrong, too_long = _once(sent) if is_repeated else sent, 0, 0
        if not set(map(type, values)) <= {str}:
            known = [value if isinstance(value, str) else None for value in sent]
            wrong = known.count(None) - sent.count(None)
            values = sent = [value or "" for value in known]
        if max(map(len, values), default=0) > most_chars:
            too_long = sum(len(value) > most_chars for value in sent)
            values = sent = [shorten(one) if len(one) > most_chars else one for one in sent]
        return _Cleaned(
            [value or None for value in sent] if "" in values else sent, wrong, too_long
        )

    return clean


def _cut_rules(rules: str) -> str:
    """Return as many whole rules as there is room for: half a name would be another rule."""
    whole, _, _ = rules[: _RULES_CHARS + 1].rpartition(",")
    return whole


def _once(sent: list[Any]) -> Collection[Any]:
    """Return each value once; all there are, where some cannot be compared."""
    try:
        return set(sent)
    except TypeError:
        return sent


def _ints(sent: list[Any]) -> _Cleaned:
    if set(map(type, sent)) <= {int} and max(sent, default=0) < _MOST_INT:
        if min(sent, default=0) >= 0:
            return _Cleaned(sent, 0)
        return _Cleaned([value if value >= 0 else None for value in sent], 0)
    wrong = sum(type(value) is not int and value is not None for value in sent)
    return _Cleaned([_int(value) for value in sent], wrong)


def _int(value: Any) -> int | None:
    return value if type(value) is int and 0 <= value < _MOST_INT else None


def _scores(sent: list[Any]) -> _Cleaned:
    with suppress(TypeError, ValueError, OverflowError):
        # All at once where all are known: a compile scores hundreds, on the ingest thread. As one
        # JSON list they are read in a fifth of the time; nothing but one number each comes out of
        # it as that many numbers.
        numbers = orjson.loads(f"[{','.join(sent)}]")
        if len(numbers) == len(sent) and set(map(type, numbers)) <= {float, int}:
            scores = list(map(round, map(_TIMES_NANO, numbers)))
            if max(scores) < _MOST_SCORE_NANO and min(scores) > -_MOST_SCORE_NANO:
                return _Cleaned(scores, 0)
    column = [_score_nano(value) for value in sent]
    return _Cleaned(column, column.count(None) - sent.count("") - sent.count(None))


def _score_nano(value: Any) -> int | None:
    """Return billionths of a point: of a decimal text, or the number itself."""
    if type(value) is int:
        return value if abs(value) < _MOST_INT else None
    try:
        score = float(value) if type(value) is str else math.nan
    except ValueError:
        return None
    return round(score * _NANO) if abs(score) < _MOST_SCORE else None


def _refs(sent: list[Any]) -> _Cleaned:
    """Return digests; what is withheld has none."""
    if not any(sent):
        return _Cleaned([None] * len(sent), 0)
    with suppress(TypeError, ValueError):
        # All at once where all are whole: a compile names hundreds.
        if set(map(len, sent)) == {_REF_CHARS}:
            digests = bytes.fromhex("".join(sent).replace("sha256:", ""))
            if len(digests) == 32 * len(sent):
                return _Cleaned([digest for (digest,) in iter_unpack("32s", digests)], 0)
    return _Cleaned([_digest(value) for value in sent], 0)


def _digest(value: Any) -> bytes | None:
    if type(value) is not str or len(value) != _REF_CHARS or not value.startswith("sha256:"):
        return None
    try:
        digest = bytes.fromhex(value[7:])
    except ValueError:
        return None
    return digest if len(digest) == 32 else None  # fromhex passes over spaces


def _split_sources(lines: Sequence[str | None]) -> tuple[list[str | None], list[str | None]]:
    """Return types and places of lines such as `file docs/a.md`."""
    split = [(line or "").partition(" ") for line in lines]
    known = {kind: _source_type(kind) for kind in {kind for kind, _, _ in split}}
    kinds = [known[kind] for kind, _, _ in split]
    return kinds, [uri or None for _, _, uri in split]


def _source_type(kind: str) -> str | None:
    return "withheld" if kind.startswith(_WITHHELD) else kind[:_NAME_CHARS] or None


_IDS, _LINES = _texts(_ID_CHARS), _texts(_TEXT_CHARS)
_NAMES = _texts(_NAME_CHARS, is_repeated=True)
_READ: Mapping[str, Callable[[list[Any]], _Cleaned]] = {
    "ids": _IDS,
    "kinds": _NAMES,
    "decisions": _NAMES,
    "passes": _NAMES,
    "reasons": _NAMES,
    "sources": _LINES,
    "sections": _NAMES,
    "tokens_before": _ints,
    "tokens_after": _ints,
    "scores": _scores,
    "missed_tokens": _ints,
    "missed_scores": _ints,
    "related": _texts(_ID_CHARS, is_repeated=True),
    "rule_ids": _texts(_RULES_CHARS, is_repeated=True, cut=_cut_rules),
    "payload_refs": _refs,
    "final_refs": _refs,
}
# In the order of RECEIPT_COLUMNS.
_WRITTEN = (
    "ordinals", "ids", "kinds", "decisions", "passes", "reasons", "source_types", "sources",
    "sections", "tokens_before", "tokens_after", "scores", "missed_tokens", "missed_scores",
    "related", "rule_ids", "payload_refs", "final_refs",
)  # fmt: skip


# The whole of a compile whose span holds only its first 4,000 receipts: the stored result.
#
# Whichever of span and payload comes first, the receipts are written again when both are here.


# A result of 50,000 receipts; reading one takes the ingest thread 5 ms a MiB.
MOST_BYTES = 64 * 1024 * 1024

Json = Mapping[str, Any]


class ResultUnreadableError(StoreCorruptError):
    """Bytes are stored as the result of a compile and are none."""

    code = "result_unreadable"


def with_result(connection: apsw.Connection, made: SpanProjection) -> SpanProjection:
    """Return the rows of a compile span with all receipts; as it is where nothing is to be had."""
    compilation = made.compilation
    if compilation is None or not compilation.is_cut or compilation.row.result_ref is None:
        return made
    try:
        result = read_result(connection, compilation.row.result_ref)
        whole = None if result is None else _completed(compilation, result)
    except StoreCorruptError as error:
        return _noted(made, compilation, str(error))
    if whole is None:
        return made
    named = (*made.payloads, *_named(whole))
    return made._replace(
        compilation=whole,
        payloads=tuple(dict.fromkeys(named)),
        attribute_tokens=f"{made.attribute_tokens} {tokens_of(found_by(whole))}",
    )


def read_result(connection: apsw.Connection, ref: str) -> Json | None:
    """Return the stored result of a compile; None when it is not here.

    Raises StoreCorruptError when its file is gone, ResultUnreadableError when it is no result.
    """
    try:
        payload = get_payload(connection, parse_payload_ref(ref))
    except (NotFoundError, InvalidQueryError):
        return None
    if payload.size > MOST_BYTES:
        raise ResultUnreadableError(f"the stored result is too large to read: {payload.size:,} B")
    try:
        result = orjson.loads(read_payload(folder_of(connection), payload))
    except orjson.JSONDecodeError:
        raise ResultUnreadableError("the stored result is no JSON") from None
    if not isinstance(result, dict) or not isinstance(result.get("decisions"), list):
        raise ResultUnreadableError("the stored result holds no decisions")
    return result


def _completed(projection: CompilationProjection, result: Json) -> CompilationProjection:
    if result.get("id") != projection.row.id:
        raise ResultUnreadableError("the stored result is of another compilation")
    decisions = [one for one in result["decisions"] if isinstance(one, dict)]
    columns = {name: [one.get(key) for one in decisions] for name, key in _KEYS.items()}
    columns["scores"] = [_score(one) for one in decisions]
    columns["rule_ids"] = [_joined_rules(one.get("rule_ids")) for one in decisions]
    columns["final_refs"] = [_other_final(one) for one in decisions]
    notes = projection.row.notes.split("\n") if projection.row.notes else ()
    return with_receipts(projection.row, columns, total=projection.row.item_total, notes=notes)


_KEYS = {
    "ids": "item_id",
    "kinds": "kind",
    "decisions": "decision",
    "passes": "pass_name",
    "reasons": "reason_code",
    "sources": "source",
    "sections": "section",
    "tokens_before": "original_tokens",
    "tokens_after": "final_tokens",
    "missed_tokens": "missed_by_tokens",
    "missed_scores": "missed_by_score",
    "related": "related_item_id",
    "payload_refs": "original_ref",
}


def _score(decision: Json) -> Any:
    breakdown = decision.get("score_breakdown")
    return breakdown.get("score") if isinstance(breakdown, dict) else None


def _joined_rules(rules: Any) -> str | None:
    if not isinstance(rules, list):
        return None
    return ",".join(rule for rule in rules if isinstance(rule, str))


def _other_final(decision: Json) -> Any:
    final = decision.get("final_ref")
    return None if final == decision.get("original_ref") else final


def _named(compilation: CompilationProjection) -> Iterator[bytes]:
    """Yield what the receipts refer to: gc keeps what a run names."""
    for column in compilation.receipts[-2:]:
        yield from (digest for digest in column if digest is not None)


def _noted(made: SpanProjection, compilation: CompilationProjection, note: str) -> SpanProjection:
    notes = "\n".join((*((compilation.row.notes,) if compilation.row.notes else ()), note))
    row = compilation.row._replace(notes=notes)
    return made._replace(compilation=compilation._replace(row=row), notes=(*made.notes, note))
