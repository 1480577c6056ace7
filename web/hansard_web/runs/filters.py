"""What the runs list is narrowed by: the address of the list, and the grammar of its filter box.

An address holds the same parameters as `GET /v1/runs`. The box accepts them as words too:
`status:error agent:mender tool:"apply patch" duration>250ms cost>0.05 since:24h` and
`gen_ai.system:openai` for any attribute; everything else is searched for in what was said.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Final, TypeVar
from urllib.parse import urlencode

from hansard_store.annotations.queries import read_scores, read_tags
from hansard_store.errors import InvalidQueryError
from hansard_store.runs.filters import (
    ANY_KIND,
    RUN_KINDS,
    RUN_STATUSES,
    RunFilter,
    check_filters,
    parse_error,
    parse_group,
    parse_receipts,
)
from hansard_web.api.times import parse_length_ms, read_time
from hansard_web.runs.columns import USUAL, ordered, read_columns, unknown_columns
from hansard_web.ui import format as figures

NS_PER_MS: Final = 1_000_000
NS_PER_S: Final = 1_000_000_000
LIST_KEYS: Final = ("status", "agent", "model", "tool", "service", "role", "tag", "score")
_SINGLE_KEYS: Final = (
    "kind",
    "conversation",
    "group",
    "user",
    "error",
    "receipts",
    "since",
    "until",
    "min_duration_ms",
    "min_cost",
)
KEYS: Final = (*LIST_KEYS, "attribute", *_SINGLE_KEYS)

_WORD = re.compile(
    r"""
    (?P<key>[\w.\-]+)(?P<sign>:|>=?)(?P<value>"[^"]*"|[^\s"]+)   # key:value key:"two words" key>1s
    | (?P<phrase>"[^"]*"?) | (?P<word>\S+)
    """,
    re.VERBOSE,
)
# As a condition is written; `localhost:8080`, `12:30` and `http://…` are not.
_NAMED_VALUE = re.compile(r"(?P<key>[a-z_]+)(?::|>=?)(?!//|\d+$)\S+")
_CARRIED: Final = ("after", "newest", "depth", "like", "csrf")  # of fragments and streams
_MOST_UNKNOWN: Final = 5  # that a page names
_LONGEST_NAME: Final = 40
_LABELS: Final = {"min_duration_ms": "duration", "min_cost": "cost"}
_ALIASES: Final = {"duration": "min_duration_ms", "cost": "min_cost"}
_MAX_NS: Final = (1 << 63) - 1
_In = TypeVar("_In")
_Out = TypeVar("_Out")


@dataclass(frozen=True, slots=True)
class FilterTerm:
    """One condition: a parameter of the address and its value, both as text."""

    key: str
    value: str

    @property
    def label(self) -> str:
        return _LABELS.get(self.key, self.key)

    @property
    def shown(self) -> str:
        """The value as a person reads it."""
        if self.key == "min_duration_ms" and self.value.isdecimal():
            return "> " + figures.duration(int(self.value) * NS_PER_MS)
        if self.key == "min_cost":
            return f"> ${self.value}"
        if self.key in ("group", "error"):
            return self.value[:8]
        return self.value.replace(":", " = ", 1) if self.key == "attribute" else self.value


@dataclass(frozen=True, slots=True)
class ListState:
    """The whole state of the list, as its address holds it."""

    terms: tuple[FilterTerm, ...] = ()
    words: str = ""
    sort: str = ""
    cursor: str = ""
    compare: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()  # (): the usual ones
    view: str = ""  # the name of the saved view that this began as
    unknown: tuple[str, ...] = ()  # names of parameters that a list does not have
    hides_other: bool = False  # no kind is given, and the list shows runs of kind agent alone

    def has(self, key: str, value: str) -> bool:
        return FilterTerm(key, value) in self.terms

    def value(self, key: str) -> str:
        """The value of a parameter that has one, "" where it is not set."""
        return next((term.value for term in self.terms if term.key == key), "")

    def toggled(self, key: str, value: str) -> ListState:
        """The state with a term put in or taken out, from the first page on."""
        term = FilterTerm(key, value)
        if term in self.terms:
            return self._first_page(tuple(other for other in self.terms if other != term))
        return self.setting(key, value)

    def setting(self, key: str, value: str) -> ListState:
        """The state with a term added, in place of another where there can be only one."""
        terms = self.terms if key in LIST_KEYS else self.without(key).terms
        return self._first_page((*terms, FilterTerm(key, value)))

    def without(self, *keys: str) -> ListState:
        return self._first_page(tuple(term for term in self.terms if term.key not in keys))

    def sorted_by(self, sort: str) -> ListState:
        return replace(self, sort=sort, cursor="")

    def searching(self, words: str) -> ListState:
        return replace(self, words=words, cursor="")

    def showing(self, columns: Iterable[str]) -> ListState:
        """The state with other columns."""
        return replace(self, columns=ordered(columns))

    @property
    def shown_columns(self) -> tuple[str, ...]:
        return self.columns or USUAL

    def comparing(self, run_ids: Sequence[str]) -> ListState:
        return replace(self, compare=tuple(run_ids))

    def at(self, cursor: str) -> ListState:
        return replace(self, cursor=cursor)

    def _first_page(self, terms: tuple[FilterTerm, ...]) -> ListState:
        return replace(self, terms=terms, cursor="")

    def explicit(self) -> ListState:
        """The state whose address says which kind of runs is shown."""
        if not self.hides_other:
            return self
        terms = (*self.terms, FilterTerm("kind", RUN_KINDS[0]))
        return replace(self, terms=terms, hides_other=False)

    def pairs(self) -> list[tuple[str, str]]:
        """The parameters of the address, in one order: equal states have equal addresses."""
        pairs = [(term.key, term.value) for term in sorted(self.terms, key=_place)]
        pairs = [("q", self.words), *pairs, ("sort", self.sort)]
        pairs += [("columns", ",".join(self.columns)), ("view", self.view), ("cursor", self.cursor)]
        pairs += [("compare", run_id) for run_id in self.compare]
        return [(key, value) for key, value in pairs if value]

    @property
    def query(self) -> str:
        return urlencode(self.pairs())

    @property
    def url(self) -> str:
        return f"/?{self.query}" if self.query else "/"


def _place(term: FilterTerm) -> int:
    return KEYS.index(term.key)


def read_state(pairs: Iterable[tuple[str, str]]) -> ListState:
    """Return the state of an address; what it does not know is left out.

    Conditions typed into the box (`q`) become terms, so they are shown as chips from then on.
    Raises InvalidQueryError where there are too many.
    """
    terms: list[FilterTerm] = []
    words: list[str] = []
    others = {"sort": "", "cursor": "", "columns": "", "view": ""}
    unknown: dict[str, None] = {}
    compare: dict[str, None] = {}
    for key, value in pairs:
        if key == "q":
            typed, rest = parse_words(value)
            terms += typed
            words += rest
        elif key == "compare":
            compare.setdefault(value)
        elif key == "columns":
            others[key] = ",".join(filter(None, (others[key], value)))
        elif key in others:
            others[key] = value
        elif key in KEYS:
            terms += [FilterTerm(key, value)] if value else []
        elif key not in _CARRIED and not key.startswith("utm_"):
            unknown.setdefault(key[:_LONGEST_NAME])
    unique_terms = dict.fromkeys(terms)
    check_filters(len(unique_terms))
    state = ListState(
        words=" ".join(words),
        sort=others["sort"],
        cursor=others["cursor"],
        compare=tuple(compare)[-2:],
        columns=read_columns(others["columns"]),
        view=others["view"],
        unknown=(*unknown, *unknown_columns(others["columns"]))[:_MOST_UNKNOWN],
    )
    for term in unique_terms:
        state = replace(state.setting(term.key, term.value), cursor=state.cursor)
    return state


def parse_words(text: str) -> tuple[list[FilterTerm], list[str]]:
    """Split the text of the box into conditions and words to search for."""
    terms: list[FilterTerm] = []
    words: list[str] = []
    for match in _WORD.finditer(text):
        term = _term(match["key"], match["sign"], match["value"]) if match["key"] else None
        if term is None:
            words.append(match[0])
        else:
            terms.append(term)
    return terms, words


def _term(key: str, sign: str, value: str) -> FilterTerm | None:
    """Return the condition that is meant; None where it is just a word with a colon in it."""
    value = value.strip('"')
    key = _ALIASES.get(key, key)
    if not value:
        return None
    if key == "min_duration_ms":
        length_ms = parse_length_ms(value)
        return None if length_ms is None else FilterTerm(key, str(length_ms))
    if key == "min_cost":
        return FilterTerm(key, value.lstrip("$")) if _is_amount(value.lstrip("$")) else None
    if sign != ":":
        return None
    if key in KEYS:
        return FilterTerm(key, value)
    # Names with a dot are attributes; "http://…" and "12:30" are words.
    return FilterTerm("attribute", f"{key}:{value}") if "." in key else None


def _is_amount(text: str) -> bool:
    return re.fullmatch(r"\d{1,9}(?:\.\d{1,9})?", text) is not None


def _not_filters(words: str) -> Iterator[str]:
    """Name what looks like a condition and is none, so that its text was searched for."""
    _, rest = parse_words(words)
    for word in dict.fromkeys(rest):
        named = _NAMED_VALUE.fullmatch(word)
        if named is None:
            continue
        key = _ALIASES.get(named["key"], named["key"])
        if key in KEYS:
            yield f"“{word}” has no value that {named['key']} can have. Searched as text"
        else:
            yield f"unknown filter “{named['key']}”. Searched as text{_suggested(key)}"


def _suggested(key: str) -> str:
    """Return what a misspelt key may mean, as the end of a sentence."""
    near = get_close_matches(key, [*(_LABELS.get(key, key) for key in KEYS), "sort"], n=1)
    return f". Did you mean “{near[0]}”?" if near else ""


def _unknown_parameters(state: ListState) -> Iterator[str]:
    for name in state.unknown:
        yield f"unknown parameter “{name}” of the address. Ignored{_suggested(name)}"


@dataclass(frozen=True, slots=True)
class Meant:
    """A filter the store understands, and what of the address could not be meant."""

    filter: RunFilter
    problems: tuple[str, ...] = ()


def to_filter(state: ListState, *, now_ns: int) -> Meant:
    """Return the filter of a state. Invalid values are left out and named."""
    problems = [*_unknown_parameters(state), *_not_filters(state.words)]
    unknown = [status for status in _values(state, "status") if status not in RUN_STATUSES]
    if unknown:
        known = ", ".join(RUN_STATUSES)
        problems.append(f"no run has the status “{unknown[0]}”; there are {known}")
    filters = RunFilter(
        q=state.words,
        kind=_kind(state, problems),
        status=tuple(one for one in _values(state, "status") if one in RUN_STATUSES),
        agent=_values(state, "agent"),
        model=_values(state, "model"),
        tool=_values(state, "tool"),
        service=_values(state, "service"),
        role=_values(state, "role"),
        conversation=state.value("conversation") or None,
        group=_read(problems, parse_group, state.value("group"), None),
        user=state.value("user") or None,
        error=_read(problems, parse_error, state.value("error"), None),
        has_receipts=_read(problems, parse_receipts, state.value("receipts"), None),
        tag=_read(problems, read_tags, _values(state, "tag"), ()),
        score=_read(problems, read_scores, _values(state, "score"), ()),
        attributes=tuple(_attribute(text) for text in _values(state, "attribute")),
        since_ns=_time(state, "since", now_ns, problems),
        until_ns=_time(state, "until", now_ns, problems),
        min_duration_ns=_number(state, "min_duration_ms", NS_PER_MS, problems),
        min_cost_usd_nano=_number(state, "min_cost", NS_PER_S, problems),
    )
    return Meant(filters, tuple(problems))


def _kind(state: ListState, problems: list[str]) -> str | None:
    if state.hides_other:
        return RUN_KINDS[0]
    text = state.value("kind")
    if text and text not in (*RUN_KINDS, ANY_KIND):
        known = ", ".join((*RUN_KINDS, ANY_KIND))
        problems.append(f"no run is of kind “{text}”; there are {known}")
    return text if text in RUN_KINDS else None


def _read(problems: list[str], read: Callable[[_In], _Out], value: _In, otherwise: _Out) -> _Out:
    """Return a value as the store reads it; what it refuses is named."""
    try:
        return read(value)
    except InvalidQueryError as error:
        problems.append(str(error))
        return otherwise


def _values(state: ListState, key: str) -> tuple[str, ...]:
    return tuple(term.value for term in state.terms if term.key == key)


def _attribute(text: str) -> tuple[str, str | None]:
    key, colon, value = text.partition(":")
    return key, value if colon else None


def _time(state: ListState, key: str, now_ns: int, problems: list[str]) -> int | None:
    try:
        return read_time(key, state.value(key) or None, now_ns=now_ns)
    except InvalidQueryError as error:
        problems.append(str(error))
        return None


def _number(state: ListState, key: str, scale: int, problems: list[str]) -> int | None:
    text = state.value(key)
    if not text:
        return None
    if not _is_amount(text):
        problems.append(f"“{text}” is no amount")
        return None
    return min(round(float(text) * scale), _MAX_NS)


def newest_first(state: ListState) -> bool:
    """Whether new runs belong at the top of what this state shows."""
    return state.sort in ("", "-first_seen") and not state.cursor


def hidden_pairs(state: ListState, *, leave_out: Sequence[str] = ()) -> list[tuple[str, str]]:
    """The parameters that a form carries along unseen."""
    return [(key, value) for key, value in state.pairs() if key not in leave_out]
