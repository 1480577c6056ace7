"""What an agent reads: a run's working memory, and the durable memory of a namespace."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import apsw

from hansard_compiler.compile.config import BM25
from hansard_compiler.compile.items import CandidateItem, from_memory, unix_us
from hansard_compiler.compile.models import MemoryRecord, parse
from hansard_compiler.compile.passes.validate import in_scope
from hansard_compiler.conflicts import contradictions
from hansard_compiler.models.memory import ReadMemory
from hansard_compiler.relevance import scorer_named
from hansard_compiler.words import WORD, terms
from hansard_store.database.stored_json import json_of, json_text
from hansard_store.memory.queries import STATES
from hansard_store.memory.records import Memory, MemoryConflict
from hansard_store.memory.rows import COLUMNS, candidate_json, memories_by_number, whole
from hansard_store.memory.supersession import place_tokens

_RECENT: Final = 300  # records, the newest, that are rated though they share no word
_SUBJECT_WORDS: Final = 8
_MOST_OF_SUBJECT: Final = 50  # records about one subject, the newest, that are compared
_FEW_WORDS: Final = 5
_WHOLE: Final = 60  # matches, the newest, that are weighed: with all the words,
_PARTLY: Final = 100  # and with any
_MOST_HIDDEN: Final = 20
_MOST_WORDS: Final = 32
_SHORTEST_STEM: Final = 3  # letters of what a word may begin with
_TEXTS: Final = """
SELECT memory.id, body.subject, body.attribute, body.content, body.scope
FROM memory_fts CROSS JOIN memory ON memory.id = memory_fts.rowid
CROSS JOIN memory_body AS body ON body.memory = memory.id
WHERE memory_fts MATCH :match AND {wanted}
ORDER BY memory_fts.rowid DESC LIMIT :limit
"""


def read_durable(
    connection: apsw.Connection, request: ReadMemory, names: tuple[str, str, str], *, now_ns: int
) -> list[Memory]:
    """Return durable records of a namespace: the best answers to a text, else the last written.

    `names` are the namespace as it is stored. A record that names no project, user or agent is for
    all of them. With `hidden` those follow that do not stand.
    """
    clauses, parameters = _conditions(request, names)
    # Parts that are not named are left to the row: every record has them, or nearly.
    named = [token for token in place_tokens(names) if len(token) > len("p0")]
    namespace = [f"({token} OR {token[0]}0)" for token in named]
    match = f"place : ({' AND '.join(namespace)})"
    words = _query_words(request.text)
    search = _Search(clauses, {**parameters, "now": now_ns}, match, words, request)
    found = _best(connection, search, state="current", limit=request.limit)
    if request.hidden:
        found += _best(connection, search, state="hidden", limit=_MOST_HIDDEN)
    records = memories_by_number(connection, found, now_ns=now_ns)
    return [records[number] for number in found]


@dataclass(frozen=True, slots=True)
class _Search:
    clauses: Sequence[str]
    parameters: Mapping[str, Any]
    match: str
    words: Sequence[str]  # each as the index spells it; none: no text was given
    request: ReadMemory

    @property
    def any_of(self) -> str:
        return f"{self.match} AND body : ({' OR '.join(self.words)})"

    @property
    def all_of(self) -> str:
        return f"{self.match} AND body : ({' AND '.join(self.words)})"


def _best(connection: apsw.Connection, search: _Search, *, state: str, limit: int) -> list[int]:
    """Return the numbers of the best records of one state: rated by the words they share.

    The newest with any of the words are weighed and, of what stands, those with all of them.
    """
    if not search.words:
        return list(_texts(connection, search, search.match, state=state, most=limit))[:limit]
    texts = _texts(connection, search, search.any_of, state=state, most=_PARTLY)
    if len(texts) >= _PARTLY and len(search.words) > 1 and state == "current":
        texts |= _texts(connection, search, search.all_of, state=state, most=_WHOLE)
    by_words = set(texts)
    scorer = search.request.scorer
    if scorer != BM25 and state == "current":
        texts |= _texts(connection, search, search.match, state=state, most=_RECENT)
    rated = scorer_named(scorer)(search.request.text or "", list(texts.values()))
    # What shares no word has to be half as good as the best.
    least = max(rated, default=0) // 2
    ranked = sorted(
        (-rating, -number)
        for rating, number in zip(rated, texts, strict=True)
        if number in by_words or rating > least
    )
    return [-number for _, number in ranked[:limit]]


def contradicted_by(
    connection: apsw.Connection, one: Memory, *, now_ns: int
) -> list[MemoryConflict]:
    """Return what stands of the same namespace and subject and contradicts a record.

    Looked at are records that name no attribute: of one attribute only one is current.

    Nothing is settled by it: a compile does that, and a person can end the wrong one.
    """
    names = (one.project, one.user, one.agent)
    subject = [f'"{word}"' for word in WORD.findall(one.subject)[:_SUBJECT_WORDS]]
    if one.is_working or one.attribute or not subject:
        return []  # of one attribute one record is current: the newer superseded the other
    namespace = " AND ".join(place_tokens(names))
    parameters = {
        "match": f"place : ({namespace}) AND body : ({' AND '.join(subject)})",
        "subject": one.subject,
        "limit": _MOST_OF_SUBJECT,
        "now": now_ns,
    }
    sql = _TEXTS.format(wanted=f"{STATES['current']} AND {_OF_SUBJECT}")
    found: Any = connection.execute(sql, parameters)
    numbers = [number for number, *_ in found if number != one.id]
    others = [
        other
        for other in memories_by_number(connection, numbers, now_ns=now_ns).values()
        if other.memory_type == one.memory_type and not other.attribute
    ]
    return list(_conflicts(one, others))


def _conflicts(one: Memory, others: Sequence[Memory]) -> Iterator[MemoryConflict]:
    """Yield those that contradict a record, each looked at by itself."""
    for other in others:
        items = [_item(each, position) for position, each in enumerate((one, other))]
        texts = {item.id: _statement(item) for item in items}
        for found in contradictions(items, texts):
            yield MemoryConflict(other.memory_id, found.how, other.confidence, found.is_certain)


def _item(one: Memory, position: int) -> CandidateItem:
    record = parse(MemoryRecord, candidate_json(one))
    return from_memory(record, position=position, now_us=one.freshness_ns // 1000)


def _statement(item: CandidateItem) -> str:
    """Return what a record says; of a few words, that they hold of its subject."""
    if item.subject is None or len(item.text.split()) >= _FEW_WORDS:
        return item.text
    return f"{item.subject} is {item.text}"


def _texts(
    connection: apsw.Connection, search: _Search, match: str, *, state: str, most: int
) -> dict[int, str]:
    """Return what the newest matches say, by number; those of another scope are left out."""
    sql = _TEXTS.format(wanted=" AND ".join((STATES[state], *search.clauses)))
    bindings = {**search.parameters, "match": match, "limit": most}
    rows: Any = connection.execute(sql, bindings)
    scope = {**search.request.namespace.scope, **search.request.scope}
    return {
        number: f"{subject}\n{attribute}\n{content}"
        for number, subject, attribute, content, own in rows
        if own == "{}" or in_scope(json_of(own), scope)
    }


_OF_SUBJECT: Final = """
lower(:subject) = (
  SELECT lower(body.subject) FROM memory_body AS body WHERE body.memory = memory.id)
"""


def _conditions(
    request: ReadMemory, names: tuple[str, str, str]
) -> tuple[list[str], dict[str, Any]]:
    clauses, parameters = ["memory.memory_type <> 'working'"], dict[str, Any]()
    for part, name in zip(("project", "user", "agent"), names, strict=True):
        clauses.append(f"memory.{part} IN ('', :{part})")
        parameters[part] = name
    if request.memory_types:
        clauses.append("memory.memory_type IN (SELECT value FROM json_each(:types))")
        parameters["types"] = json_text(request.memory_types)
    for number, tag in enumerate(request.tags):
        clauses.append(f"memory.id IN (SELECT memory FROM memory_tag WHERE tag = :tag{number}_)")
        parameters[f"tag{number}_"] = tag
    if request.min_confidence is not None:
        clauses.append("memory.confidence >= :confidence")
        parameters["confidence"] = request.min_confidence
    if request.fresh_since is not None:
        clauses.append("memory.freshness_ns >= :fresh")
        parameters["fresh"] = unix_us(request.fresh_since) * 1000
    if request.subject is not None:
        clauses.append(_OF_SUBJECT)
        parameters["subject"] = request.subject
    return clauses, parameters


_WORKING: Final = f"""
SELECT {COLUMNS} FROM memory INDEXED BY memory_run
WHERE trace_id = :run AND (chain IS NULL OR chain = :chain) AND {{state}}
ORDER BY memory.id DESC LIMIT :limit
"""


def read_working(
    connection: apsw.Connection, request: ReadMemory, run: bytes, *, now_ns: int
) -> list[Memory]:
    """Return a run's working memory, slot by slot; a chain's own stands before the run's."""
    chain = None if request.chain is None else bytes.fromhex(request.chain[33:49])
    state = STATES["current"] if not request.hidden else STATES["all"]
    parameters = {"run": run, "chain": chain, "now": now_ns, "limit": 500}
    sql = _WORKING.format(state=state)
    rows = connection.execute(sql, parameters).fetchall()
    found = [
        one
        for one in whole(connection, rows, now_ns=now_ns)
        if not request.slots or one.slot in request.slots
    ]
    standing: dict[str, Memory] = {}
    for one in sorted(found, key=lambda one: one.chain is not None, reverse=True):
        if one.state == "current":
            standing.setdefault(one.slot or "", one)
    hidden = [one for one in found if one.state not in ("current", "purged")]
    return [*standing.values(), *hidden[:_MOST_HIDDEN]]


def _query_words(text: str | None) -> list[str]:
    """Return the words of a question as the index spells them; none for no text.

    They are stems, so that what was "rounded" is found by who asks about rounding.
    """
    words = dict.fromkeys(word for word in terms(text or "") if word.isalnum())
    return [_begun(word) for word in list(words)[:_MOST_WORDS]]


def _begun(word: str) -> str:
    stem = word[:-1] if word.endswith("y") and len(word) > _SHORTEST_STEM else word
    return f'"{stem}"*' if len(stem) >= _SHORTEST_STEM else f'"{stem}"'
