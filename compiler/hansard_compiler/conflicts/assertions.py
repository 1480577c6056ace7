"""What a sentence of any shape claims of one identified thing: `loan L8411 bears 3 % interest`.

    Loan L8411 carries 3 percent interest and runs for 2 years.
    The interest on loan L8411 is fixed at 4 percent.

A claim is an identifier, an attribute beside an amount, and the amount. What says at which
moment or in which sense it holds (dates, ordinals, `net`, `on admission`) is part of what is
compared. It is certain only of an attribute that a thing has once and keeps, in a
clause that says no more.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, get_args

from hansard_compiler.compile.items import CandidateItem
from hansard_compiler.compile.models import MemoryType
from hansard_compiler.conflicts import certainty
from hansard_compiler.conflicts import lexicon as words
from hansard_compiler.conflicts.facts import plain
from hansard_compiler.conflicts.sentences import VERBS, Sentence
from hansard_compiler.conflicts.statements import Frame, Statement, base
from hansard_compiler.conflicts.tokens import TYPED, Token

SORT: Final = "claim"
_BEHIND: Final = frozenset({"of", "is", "was", ":", "=", "at", "fixed", "set"})
_MOST_AMOUNTS: Final = 4
_ENDING: Final = words.LINKS - {"with", "plus", "including", "as", "/"}  # what ends a clause


def claims_of(item_id: str, found: Sentence) -> Iterator[Statement]:
    """Yield what a sentence claims of the one thing that it identifies; of two things nothing."""
    tokens = found.tokens
    amounts = [at for at, one in enumerate(tokens) if _is_amount(tokens, at, one)]
    named = [at for at, one in enumerate(tokens) if _is_identifier(tokens, at, one)]
    if len(named) != 1 or not 0 < len(amounts) <= _MOST_AMOUNTS or found.is_denied:
        return
    thing = tokens[named[0]]
    when = tuple(sorted(str(one.value) for one in tokens if _is_circumstance(one)))
    past = certainty.is_past(tokens, found.verb_at)
    for at in amounts:
        nouns = _attribute_at(tokens, at, named[0])
        if nouns is None:
            continue
        attribute = tuple(base(str(tokens[n].value)) for n in nouns)
        sure = (
            not (found.is_hedged or found.is_about or past)
            and bool(tokens[at].unit)
            and certainty.is_lasting(str(tokens[nouns[-1]].value))
            and not _says_more(tokens, at, named[0], nouns)
        )
        frame = Frame(f"{SORT}:{tokens[at].unit}", frozenset(), (thing.value, when, attribute), "")
        yield Statement(
            item_id, frame, tokens[at].value, "number", sure, found.corrects, found.text, tokens[at]
        )


def _says_more(tokens: Sequence[Token], at: int, named: int, nouns: range) -> bool:
    """Return whether the clause of an amount, or what names the thing, has words of its own.

    A part of a document (`section 4`) may name several amounts of one sort.
    """
    if str(tokens[named - 1].value) in words.PARTS:
        return True
    begin, end = at, at + 1
    while begin > 0 and tokens[begin - 1].value not in _ENDING:
        begin -= 1
    while end < len(tokens) and tokens[end].value not in _ENDING:
        end += 1
    head = next((n for n in range(named, len(tokens)) if tokens[n].value in VERBS), named)
    known = {at, named, named - 1, *nouns}
    return any(
        (_is_noun(tokens, n) or tokens[n].kind in TYPED)
        and n not in known
        and not _is_circumstance(tokens[n])
        for n in {*range(begin, end), *range(head)}
    )


def _is_amount(tokens: Sequence[Token], at: int, token: Token) -> bool:
    if token.kind != "number" or at == 0:
        return False
    return bool(token.unit) or "." in token.text or not _is_identifier(tokens, at, token)


def _is_identifier(tokens: Sequence[Token], at: int, token: Token) -> bool:
    """Return whether a token is an identifier: `L8411`, or a number behind what it numbers."""
    if token.kind == "id":
        return True
    is_bare = token.kind == "number" and not token.unit and token.text.isdigit()
    return is_bare and at > 0 and str(tokens[at - 1].value) in words.REFERENCES


def _is_circumstance(token: Token) -> bool:
    """Return whether a word is about when, where or of which kind an amount is."""
    if token.kind in ("date", "day", "time", "group"):
        return True
    return token.value in words.ORDINALS | words.CIRCUMSTANCES | words.MODALS


def _attribute_at(tokens: Sequence[Token], at: int, named: int) -> range | None:
    """Return the places of the nouns that an amount is of, beside it or in front of the verb."""
    if at + 1 < len(tokens) and _is_noun(tokens, at + 1) and _ends(tokens, at + 2):
        return range(at + 1, at + 2)  # `6.5 percent interest`
    before = at - 1
    while before > 0 and tokens[before].value in _BEHIND:
        before -= 1
    if before != named and _is_noun(tokens, before):
        return _group(tokens, before, named)  # `a potassium of 3.4`, `depth 17 cm`
    heads = [n - 1 for n in range(1, before) if tokens[n].value in ("of", "on", "for")]
    if before == named and heads and _is_noun(tokens, heads[0]):
        return _group(tokens, heads[0], named)  # `the pH of sample S-145 is 5.4`
    return None


def _group(tokens: Sequence[Token], last: int, named: int) -> range:
    """Return the nouns that stand together up to one: `the setup fee`."""
    first = last
    while first > 0 and first - 1 not in (named, named - 1) and _is_noun(tokens, first - 1):
        first -= 1
    return range(first, last + 1)


def _ends(tokens: Sequence[Token], at: int) -> bool:
    """Return whether a noun ends its group, so that it is no part of another one."""
    return at >= len(tokens) or not _is_noun(tokens, at)


def _is_noun(tokens: Sequence[Token], at: int) -> bool:
    token = tokens[at]
    joins = words.PREPOSITIONS | words.LINKS | words.JOINING | words.MODALS
    return token.kind == "word" and str(token.value) not in joins | VERBS


# Where an item comes from: what states whose setting it is where its text does not.
#
# `The request timeout is 30 seconds.` in `services/gateway/README.md`, and with 60 seconds in
# `services/mailer/README.md`, are two settings. So are those of items with other metadata or tags.

# Metadata of the compiler's own: they say nothing of a place, or are compared elsewhere.
_OWN: Final = frozenset(
    {"subject", "attribute", "predicate", "value", "risk", "call_id", "response_id"}
    | {"run_id", "step_ids"}
)
# Tags that say how an item is treated, or what sort of memory it is.
_TAGS: Final = frozenset(
    {"soft", "blocking", "resolved", "required", "pinned", "evidence", "approval", "verbatim"}
    | {"profile", "workspace", "changed", "ephemeral", "correction"}
    | set(get_args(MemoryType))
)
_OF_DOCUMENT: Final = frozenset(
    {"title", "document", "file", "filename", "path", "source", "url", "uri", "page", "chunk"}
    | {"author", "publisher", "published", "section", "heading"}
)
_Names = frozenset[tuple[str, str]]
_NAME: Final = re.compile(r"[^\W\d_]{2}")  # times and plain numbers in a text are no names
# What is no part of a document: two of one folder are about one thing.
_WHOLE: Final = frozenset({"memory", "constraint", "policy"})


def are_of_one_place(a: CandidateItem, b: CandidateItem, *, is_correction: bool) -> bool:
    """Return whether nothing beside two texts separates them.

    A correction is written in another document than what it corrects: of one folder is enough.
    """
    are_parts = not is_correction and not _WHOLE & {a.kind, b.kind}
    return _origin_of(a, are_parts) == _origin_of(b, are_parts)


def are_labelled_alike(a: CandidateItem, b: CandidateItem) -> bool:
    """Return whether metadata, tags and scope of two items are the same, wherever they come from.

    What names a document (its title, author or address) says where a fact stands, not of what.
    """
    return a.scope == b.scope and _beside_fact(a) == _beside_fact(b)


def _beside_fact(item: CandidateItem) -> tuple[object, ...]:
    source, own, tags = _labels(item)
    left = ({pair for pair in one if pair[0] not in _OF_DOCUMENT} for one in (source, own))
    return (*left, tags)


def _origin_of(item: CandidateItem, is_part: bool) -> tuple[object, ...]:
    source = item.source
    if source is None:
        return "", "", _labels(item)
    uri = "" if source.source_type == "memory" else (source.uri or "").partition("#")[0]
    where = uri if is_part else uri.rpartition("/")[0]
    return where, plain(source.title or ""), _labels(item)


def _labels(item: CandidateItem) -> tuple[_Names, _Names, frozenset[str]]:
    tags = frozenset(tag for tag in item.tags if tag not in _TAGS and ":" not in tag)
    beside = item.source.metadata if item.source is not None else {}
    return _names(beside), _names(item.metadata), tags


def _names(metadata: Mapping[str, Any]) -> frozenset[tuple[str, str]]:
    """Return what metadata name: texts that hold a word, and whole numbers."""
    return frozenset(
        (name, plain(value) if isinstance(value, str) else str(value))
        for name, value in metadata.items()
        if name not in _OWN
        and ((isinstance(value, str) and _NAME.search(value)) or type(value) is int)
    )
