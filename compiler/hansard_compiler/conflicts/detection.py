"""Which items contradict each other, and how sure that is.

Structured facts decide where both items have one, and then records (`records.py`). Of other
texts, statements of one frame are compared (`statements.py`): they share their subject and their
attribute word for word and differ in the value alone. Everything doubtful is a contradiction that
is not certain, and drops nothing:

- statements whose subject may have several such values
- items that say beside the statement what each of them is about, in other numbers or names
- a setting that is not named (`the request timeout`), in items of two places (`places.py`)
- what is measured, counted or comes and goes (a temperature, seats, `is open`)
- whole documents: one sentence is no reason to lose the rest

More than two values of one frame are a list of records, not a quarrel about one of them.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Final

from hansard_compiler.compile.items import CandidateItem
from hansard_compiler.conflicts.assertions import (
    SORT,
    are_labelled_alike,
    are_of_one_place,
    claims_of,
)
from hansard_compiler.conflicts.facts import Fact, attribute_of, differ, fact_of, plain
from hansard_compiler.conflicts.lexicon import DISTINCTIVE
from hansard_compiler.conflicts.records import TextRecord, differences, record_of
from hansard_compiler.conflicts.resolution import Contradiction, belief, pair
from hansard_compiler.conflicts.sentences import read_sentence
from hansard_compiler.conflicts.statements import Statement, identity_of, statements_of
from hansard_compiler.conflicts.tokens import may_be_one
from hansard_compiler.redaction.prefilter import pattern_set

STATING: Final = frozenset(
    {"memory", "summary", "retrieval_doc", "constraint", "handoff", "other", "policy"}
)
_NOTE_CHARACTERS, _NOTE_SENTENCES = 600, 8
_OPENING_CHARACTERS, _OPENING_SENTENCES = 300, 3
# What may be dropped for one of its sentences says hardly more than that sentence.
_DROPPED_CHARACTERS, _DROPPED_SENTENCES = 300, 3
_SHORTEST, _LONGEST = 8, 300
_RIVAL_VALUES: Final = 3
_MOST_ALIKE: Final = 3
_MOST_OF_VALUE, _MOST_VALUES = 4, 8  # of one frame; of more the first are compared
_SENTENCE: Final = re.compile(r"(?<=[.!?;])\s+|\n+")
# Looked for first: most sentences of most texts state nothing.
_DISTINCTIVE: Final = pattern_set(
    rf"(?i){words}".encode()
    for words in (r"[=:]", r"n['’]t\b", rf"\b(?:of|{'|'.join(sorted(DISTINCTIVE - {'=', ':'}))})\b")
)


def contradictions(items: Sequence[CandidateItem], texts: Mapping[str, str]) -> list[Contradiction]:
    """Return every contradiction found among items that state something, in a fixed order.

    Of two items it is in once, the surest one. Linear in the number of items.
    """
    stating = [item for item in items if item.kind in STATING]
    facts = {fact.item_id: fact for item in stating if (fact := fact_of(item)) is not None}
    found: dict[tuple[str, str], Contradiction] = {}
    read = [record_of(item.id, texts[item.id]) for item in stating]
    records = {one.item_id: one for one in read if one is not None}
    texts_only = [item for item in stating if item.id not in records]
    for one in (
        *_of_facts(stating, facts),
        *_of_records(stating, records, facts),
        *_of_texts(texts_only, texts, facts),
    ):
        known = found.get((one.first, one.second))
        if known is None or (one.is_certain and not known.is_certain):
            found[one.first, one.second] = one
    return list(found.values())


def _of_facts(items: Sequence[CandidateItem], facts: Mapping[str, Fact]) -> Iterator[Contradiction]:
    """Yield pairs of facts of one key: each value against the most believed others.

    More than two values are a list: none of them is certain.
    """
    of_key: dict[tuple[str, str, str], list[CandidateItem]] = defaultdict(list)
    for item in items:
        if item.id in facts:
            of_key[facts[item.id].key].append(item)
    for stated in of_key.values():
        best: dict[str, CandidateItem] = {}
        is_list = len({facts[item.id].value for item in stated}) > 2
        for item in sorted(stated, key=lambda one: belief(one, False)):
            fact = facts[item.id]
            for rival in best.values():
                how = differ(facts[rival.id], fact)
                if how is not False:
                    sure = how is True and not is_list and fact.is_certain
                    sure = sure and facts[rival.id].is_certain and are_labelled_alike(rival, item)
                    yield pair(rival, item, "value", is_certain=sure)
            if len(best) < _RIVAL_VALUES:
                best.setdefault(fact.value, item)


def _of_records(
    items: Sequence[CandidateItem], records: Mapping[str, TextRecord], facts: Mapping[str, Fact]
) -> Iterator[Contradiction]:
    known = {item.id: item for item in items}
    for found in differences(list(records.values())):
        a, b = known[found.first], known[found.second]
        about = _about(a, b)
        if about is not None and not _facts_differ(a, b, facts):
            yield pair(a, b, "value", is_certain=found.is_certain and about)


def _of_texts(
    items: Sequence[CandidateItem], texts: Mapping[str, str], facts: Mapping[str, Fact]
) -> Iterator[Contradiction]:
    of_frame: dict[Hashable, list[Statement]] = defaultdict(list)
    for item in items:
        for statement in _stated(item, texts[item.id]):
            of_frame[statement.frame].append(statement)
    known = {item.id: item for item in items}
    for stated in of_frame.values():
        if len(stated) > 1:
            yield from _of_frame(stated, known, texts, facts)
    for first, second in _alike([one for stated in of_frame.values() for one in stated]):
        a, b = known[first.item_id], known[second.item_id]
        if not _facts_differ(a, b, facts) and _standing(first, second, a, b, texts) is not None:
            yield pair(a, b, first.how, is_certain=False)


def _alike(stated: Sequence[Statement]) -> Iterator[tuple[Statement, Statement]]:
    """Yield statements of other values in nearly the same words: they may be about one thing.

    Only among those that tell of the same numbers, dates and names, and that share one of their
    rarest words (the prefix filter of set-similarity joins). A statement that is like more than a
    few others is one of a list.
    """
    stated = [
        one
        for one in stated
        if not one.frame.sort.startswith(("polar", SORT)) and len(one.frame.words) > 1
    ]
    counts = Counter(word for one in stated for word in one.frame.words)
    holders: dict[Hashable, list[int]] = defaultdict(list)
    found: dict[int, list[int]] = defaultdict(list)
    for number, one in enumerate(stated):
        rare = sorted(one.frame.words, key=lambda word: (counts[word], str(word)))
        others: dict[int, None] = {}
        for word in rare[: len(rare) // 2 + 1]:
            held = holders[one.frame.sort, one.frame.identity, word]
            others.update(dict.fromkeys(held[-_MOST_ALIKE - 1 :]))
            held.append(number)
        for other in others:
            if _are_alike(stated[other], one):
                found[number].append(other)
                found[other].append(number)
    for number, others_of in found.items():
        for other in others_of:
            if other < number and max(len(others_of), len(found[other])) <= _MOST_ALIKE:
                yield stated[other], stated[number]


def _are_alike(a: Statement, b: Statement) -> bool:
    one, other = a.frame.words, b.frame.words
    if a.item_id == b.item_id or a.value == b.value or one == other or _may_be_one(a, b):
        return False
    if a.frame.first not in other or b.frame.first not in one:
        return False  # another subject, whatever else is said of it
    common, either = len(one & other), len(one | other)
    is_typed = any(isinstance(value, tuple) for value in a.frame.identity)
    return (common > 1 and 2 * common >= either) or (
        common > 0 and 3 * common >= either and is_typed
    )


def _stated(item: CandidateItem, text: str) -> Iterator[Statement]:
    """Yield what the sentences of a note state, of a longer text those of its opening."""
    is_note = len(text) <= _NOTE_CHARACTERS
    read = text if is_note else text[:_OPENING_CHARACTERS]
    most = _NOTE_SENTENCES if is_note else _OPENING_SENTENCES
    corrects = "correction" in item.tags
    for sentence in _SENTENCE.split(read, most)[:most]:
        if not _SHORTEST <= len(sentence) <= _LONGEST:
            continue
        if _DISTINCTIVE.Match(sentence.encode("utf-8", "surrogatepass")):
            found = read_sentence(sentence, corrects=corrects, is_named=bool(item.subject))
            if found is not None:
                yield from statements_of(item.id, found)
                yield from claims_of(item.id, found)


def _of_frame(
    stated: Sequence[Statement],
    known: Mapping[str, CandidateItem],
    texts: Mapping[str, str],
    facts: Mapping[str, Fact],
) -> Iterator[Contradiction]:
    """Yield the pairs of one frame that differ; of more than two values only corrections do."""
    of_value: dict[Hashable, list[Statement]] = defaultdict(list)
    for one in stated:
        of_value[one.value].append(one)
    is_list = len(of_value) > 2
    if len(of_value) < 2 or (is_list and not any(one.corrects for one in stated)):
        return
    few = [one[:_MOST_OF_VALUE] for one in list(of_value.values())[:_MOST_VALUES]]
    stated = [one for several in few for one in several]
    for number, second in enumerate(stated):
        for first in stated[:number]:
            a, b = known[first.item_id], known[second.item_id]
            if a.id == b.id or first.value == second.value or _may_be_one(first, second):
                continue
            by = None
            if first.corrects != second.corrects:
                by = first.item_id if first.corrects else second.item_id
            if (is_list and by is None) or _facts_differ(a, b, facts):
                continue
            sure = first.is_certain and second.is_certain
            if by is not None and not is_list:
                sure = sure or (first.is_plain and second.is_plain)
            standing = _standing(first, second, a, b, texts)
            if standing is not None:
                yield pair(a, b, first.how, by, is_certain=sure and standing)


def _may_be_one(a: Statement, b: Statement) -> bool:
    if a.token is not None and b.token is not None:
        return may_be_one(a.token, b.token)
    if isinstance(a.value, tuple) and isinstance(b.value, tuple):
        return bool(set(a.value) & set(b.value))  # `Paris` and `Paris, France`
    return False


def _facts_differ(a: CandidateItem, b: CandidateItem, facts: Mapping[str, Fact]) -> bool:
    """Return whether both items have a structured fact: those were compared, and decide."""
    return a.id in facts and b.id in facts


def _standing(
    first: Statement,
    second: Statement,
    a: CandidateItem,
    b: CandidateItem,
    texts: Mapping[str, str],
) -> bool | None:
    """Return whether two items are about one thing: True, False for perhaps, None for no."""
    about_one = _about(a, b)
    if about_one is None:
        return None
    rests = [_rest(texts[one.item_id], one.sentence) for one in (first, second)]
    about = [identity_of(rest) for rest in rests]
    if about[0] and about[1] and about[0] != about[1]:
        return False if about[0] & about[1] else None
    are_short = all(
        len(texts[one.id]) <= _DROPPED_CHARACTERS
        and len(_SENTENCE.split(texts[one.id].strip())) <= _DROPPED_SENTENCES
        for one in (a, b)
    )
    is_named = bool(first.frame.identity or a.subject)
    is_correction = first.corrects or second.corrects
    of_one = is_named or are_of_one_place(a, b, is_correction=is_correction)
    return are_short and about[0] == about[1] and about_one and of_one


def _about(a: CandidateItem, b: CandidateItem) -> bool | None:
    """Return whether what stands beside two items allows that they are about one thing."""
    named = [(one.subject and plain(one.subject), attribute_of(one)) for one in (a, b)]
    if named[0] != named[1] and all(one[0] or one[1] for one in named):
        return None
    if a.scope != b.scope:
        return None
    titles = [_title(one) for one in (a, b)]
    if any(map(str.isdigit, "".join(titles[0] ^ titles[1]))):
        return None
    return named[0] == named[1] and titles[0] == titles[1]


def _title(item: CandidateItem) -> frozenset[str]:
    """Return what the title of an item's source names: numbers, dates, names."""
    title = item.source.title if item.source is not None else None
    return identity_of(f"Of {title} is") if title else frozenset()


def _rest(text: str, sentence: str) -> str:
    before, _, after = text.partition(sentence)
    return f"{before}\n{after}"
