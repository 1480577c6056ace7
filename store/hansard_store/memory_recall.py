"""What an agent reads: a run's working memory, and the durable memory of a namespace."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import apsw
import orjson

from hansard_compiler.items import unix_us
from hansard_compiler.memory_models import ReadMemory
from hansard_compiler.passes.validate import in_scope
from hansard_compiler.relevance import Bm25
from hansard_compiler.words import terms
from hansard_store.memories import place_tokens
from hansard_store.memory_queries import ABOVE_ALL, MATCHED, STATES, rows_of
from hansard_store.memory_reads import COLUMNS, whole
from hansard_store.memory_types import Memory, words_of

_RANKED: Final = 300  # matches, the newest, that are weighed against each other
_MOST_HIDDEN: Final = 20
_MOST_WORDS: Final = 32
_SHORTEST_STEM: Final = 3  # letters of what a word may begin with


def read_durable(
    connection: apsw.Connection, asked: ReadMemory, names: tuple[str, str, str], *, now_ns: int
) -> list[Memory]:
    """Return durable records of a namespace: the best answers to a text, else the last written.

    `names` are the namespace as it is stored. A record that names no project, user or agent is for
    all of them. With `hidden` those follow that do not stand.
    """
    found = _in_namespace(connection, asked, names, state="current", now_ns=now_ns)[: asked.limit]
    if asked.hidden:
        found += _in_namespace(connection, asked, names, state="hidden", now_ns=now_ns)[
            :_MOST_HIDDEN
        ]
    return found


def _in_namespace(
    connection: apsw.Connection,
    asked: ReadMemory,
    names: tuple[str, str, str],
    *,
    state: str,
    now_ns: int,
) -> list[Memory]:
    clauses, told = _conditions(asked, names)
    told |= {"now": now_ns, "before": ABOVE_ALL, "limit": _RANKED}
    clauses.insert(0, STATES[state])
    place = [f"({token} OR {token[0]}0)" for token in place_tokens(names)]
    told["match"] = f"place : ({' AND '.join(place)})"
    sql = MATCHED.format(wanted=" AND ".join(clauses))
    said = _said(asked.text)
    if not said:
        return _fitting(connection, sql, told, asked, now_ns=now_ns)
    told["match"] += f" AND body : ({said})"
    found = _fitting(connection, sql, told, asked, now_ns=now_ns)
    rated = Bm25()(asked.text or "", [_text_of(one) for one in found])
    ranked = sorted(zip(rated, found, strict=True), key=lambda pair: (-pair[0], -pair[1].id))
    return [one for _, one in ranked]


def _fitting(
    connection: apsw.Connection,
    sql: str,
    told: Mapping[str, Any],
    asked: ReadMemory,
    *,
    now_ns: int,
) -> list[Memory]:
    found = whole(connection, rows_of(connection, sql, told), now_ns=now_ns)
    scope = {**asked.namespace.scope, **asked.scope}
    return [one for one in found if not one.scope or in_scope(one.scope, scope)]


_OF_SUBJECT: Final = """
lower(:subject) = (
  SELECT lower(body.subject) FROM memory_body AS body WHERE body.memory = memory.id)
"""


def _conditions(asked: ReadMemory, names: tuple[str, str, str]) -> tuple[list[str], dict[str, Any]]:
    clauses, told = ["memory.memory_type <> 'working'"], dict[str, Any]()
    for part, name in zip(("project", "user", "agent"), names, strict=True):
        clauses.append(f"memory.{part} IN ('', :{part})")
        told[part] = name
    if asked.memory_types:
        clauses.append("memory.memory_type IN (SELECT value FROM json_each(:types))")
        told["types"] = _json(asked.memory_types)
    for number, tag in enumerate(asked.tags):
        clauses.append(f"memory.id IN (SELECT memory FROM memory_tag WHERE tag = :tag{number}_)")
        told[f"tag{number}_"] = tag
    if asked.min_confidence is not None:
        clauses.append("memory.confidence >= :confidence")
        told["confidence"] = asked.min_confidence
    if asked.fresh_since is not None:
        clauses.append("memory.freshness_ns >= :fresh")
        told["fresh"] = unix_us(asked.fresh_since) * 1000
    if asked.subject is not None:
        clauses.append(_OF_SUBJECT)
        told["subject"] = asked.subject
    return clauses, told


_WORKING: Final = f"""
SELECT {COLUMNS} FROM memory INDEXED BY memory_run
WHERE trace_id = :run AND (chain IS NULL OR chain = :chain) AND {{state}}
ORDER BY memory.id DESC LIMIT :limit
"""


def read_working(
    connection: apsw.Connection, asked: ReadMemory, run: bytes, *, now_ns: int
) -> list[Memory]:
    """Return a run's working memory, slot by slot; a chain's own stands before the run's."""
    chain = None if asked.chain is None else bytes.fromhex(asked.chain[33:49])
    state = STATES["current"] if not asked.hidden else STATES["all"]
    told = {"run": run, "chain": chain, "now": now_ns, "limit": 500}
    sql = _WORKING.format(state=state)
    rows = rows_of(connection, sql, told)
    found = [
        one
        for one in whole(connection, rows, now_ns=now_ns)
        if not asked.slots or one.slot in asked.slots
    ]
    standing: dict[str, Memory] = {}
    for one in sorted(found, key=lambda one: one.chain is not None, reverse=True):
        if one.state == "current":
            standing.setdefault(one.slot or "", one)
    hidden = [one for one in found if one.state not in ("current", "purged")]
    return [*standing.values(), *hidden[:_MOST_HIDDEN]]


def _said(text: str | None) -> str:
    """Return the words of a question as a search in which any may be met; "" for none.

    They are stems, so that what was "rounded" is found by who asks about rounding.
    """
    words = dict.fromkeys(word for word in terms(text or "") if word.isalnum())
    return " OR ".join(_begun(word) for word in list(words)[:_MOST_WORDS])


def _begun(word: str) -> str:
    stem = word[:-1] if word.endswith("y") and len(word) > _SHORTEST_STEM else word
    return f'"{stem}"*' if len(stem) >= _SHORTEST_STEM else f'"{stem}"'


def _text_of(one: Memory) -> str:
    return "\n".join((one.subject, one.attribute, *words_of(one.content), *one.tags))


def _json(value: Any) -> str:
    return orjson.dumps(value).decode()
