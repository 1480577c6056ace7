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

import json
import re
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, get_args

from hansard_compiler.canonical import canonical_json
from hansard_compiler.compile.items import Item
from hansard_compiler.compile.models import MemoryType
from hansard_compiler.conflicts import certainty
from hansard_compiler.conflicts import lexicon as words
from hansard_compiler.conflicts.certainty import is_lasting
from hansard_compiler.conflicts.facts import Fact, attribute_of, differ, fact_of, plain
from hansard_compiler.conflicts.lexicon import TELLING
from hansard_compiler.conflicts.resolution import Contradiction, belief
from hansard_compiler.conflicts.sentences import VERBS, Sentence, read_sentence
from hansard_compiler.conflicts.statements import Frame, Statement, base, identity_of, statements_of
from hansard_compiler.conflicts.tokens import TYPED, Token, may_be_one
from hansard_compiler.redaction.prefilter import pattern_set

# Records in a text: a JSON object, or lines of `key: value`.
#
# Some fields say which record it is (`id`, `order`, `date`, `line`; without any the first field
# does), the others are attributes of it. Two records are about one thing only if they say the same
# of all such fields. A difference in one attribute of which a thing has one at a time is a
# contradiction; two records that differ in more are rows of one thing, and that is not certain.

_MOST_CHARACTERS, _MOST_FIELDS = 600, 24
_RECORDS_MOST_OF_VALUE: Final = 4
_LINE: Final = re.compile(
    r"[ \t]*(?:[-*•] )?([^\s:=][^:=\n]{0,39}?)[ \t]*[:=][ \t]*(\S[^\n]*?)[ \t]*"
)
_WORDS: Final = re.compile(r"[A-Z]?[a-zäöüß]+|[A-Z]+|[^\W_]+")
_NONE: Final = frozenset({"", "-", "–", "n/a", "na", "none", "null", "unknown", "tbd", "?"})


@dataclass(frozen=True, slots=True)
class Record:
    """What a text says of one thing."""

    item_id: str
    identity: frozenset[tuple[str, str]]  # which record it is: names of fields and their values
    is_definite: bool  # the identity is one of a record, and not only of its sort
    fields: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Difference:
    """Two records of one thing that say different things of it."""

    first: str
    second: str
    is_certain: bool


def record_of(item_id: str, text: str) -> Record | None:
    """Return the record that a text is, or None for a text of another form."""
    if len(text) > _MOST_CHARACTERS:
        return None
    fields = _of_json(text) if text.lstrip()[:1] == "{" else _of_lines(text)
    if not 2 <= len(fields) <= _MOST_FIELDS:
        return None
    told = {name for name in fields if _is_identity(name)}
    is_definite = any(_is_reference(name) and not _points_to(name) for name in told)
    if not any(map(_is_reference, told)):
        first = next(iter(fields))
        told.add(first)
        is_definite = _is_name(first, fields[first])
    identity = frozenset((name, fields[name]) for name in told)
    others = {name: value for name, value in fields.items() if name not in told}
    return Record(item_id, identity, is_definite, others)


def differences(records: Sequence[Record]) -> Iterator[Difference]:
    """Yield records of one thing that differ; of more than two values none, as it is a list.

    Linear in the number of records: those of one identity and attribute are compared.
    """
    stated: dict[Hashable, dict[str, list[Record]]] = defaultdict(lambda: defaultdict(list))
    for one in records:
        for name, value in one.fields.items():
            stated[one.identity, name][value].append(one)
    for of_value in stated.values():
        if len(of_value) != 2:
            continue
        some, others = (found[:_RECORDS_MOST_OF_VALUE] for found in of_value.values())
        for a in some:
            yield from filter(None, (_difference(a, b) for b in others if a.item_id != b.item_id))


def _difference(a: Record, b: Record) -> Difference | None:
    found = {name: how for name in a.fields if (how := _differ(a, b, name)) is not False}
    if not found:
        return None
    name, how = next(iter(found.items()))
    sure = a.is_definite and b.is_definite and len(found) == 1 and how is True
    return Difference(a.item_id, b.item_id, sure and _is_single(name, a.fields[name]))


def _differ(a: Record, b: Record, name: str) -> bool | None:
    if name not in b.fields:
        return False
    values = [one.fields[name].casefold() for one in (a, b)]
    return differ(*(Fact("", "", name, value) for value in values))


# --- reading ----------------------------------------------------------------------------------


def _of_json(text: str) -> dict[str, str]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(found, dict):
        return {}
    return {
        plain: value
        for name, given in found.items()
        if (plain := _plain(name)) and (value := _value(given)).casefold() not in _NONE
    }


def _of_lines(text: str) -> dict[str, str]:
    """Return the fields of a text all of whose lines are `key: value`, each key once."""
    fields: dict[str, str] = {}
    for line in text.split("\n"):
        if not line.strip():
            continue
        found = _LINE.fullmatch(line)
        name = _plain(found[1]) if found else ""
        if found is None or not name or name in fields or len(name.split()) > 4:
            return {}
        if found[2].casefold() not in _NONE:
            fields[name] = found[2]
    return fields


def _value(given: Any) -> str:
    return given.strip() if isinstance(given, str) else canonical_json(given)


def _plain(name: str) -> str:
    """Return the name of a field as words: `dueDate`, `due_date` and `Due date` are one."""
    return " ".join(_WORDS.findall(name)).casefold()


# --- what a field is --------------------------------------------------------------------------


def _is_identity(name: str) -> bool:
    return name in words.WHICH or _is_reference(name)


def _is_reference(name: str) -> bool:
    """Say whether a field names one record: `id`, `order`, `customer number`."""
    return name in words.REFERENCES or name.rpartition(" ")[2] in words.IDENTIFYING


def _points_to(name: str) -> bool:
    """Say whether a field is the id of something that many rows are about: `user id`."""
    noun, _, last = name.rpartition(" ")
    return bool(noun) and last in words.IDENTIFYING and noun.split()[-1] in words.POINTED_TO


def _is_name(name: str, value: str) -> bool:
    """Say whether a first field names a thing, and is not one of its attributes."""
    noun = name.rpartition(" ")[2]
    if noun in words.MEASURED | words.QUALITIES or value[:1] in '{["':
        return False
    has_letter = any(map(str.isalpha, value))
    if noun in words.ATTRIBUTES:
        return has_letter and any(map(str.isdigit, value))
    return has_letter and value.casefold() not in ("true", "false")


def _is_single(name: str, value: str) -> bool:
    """Say whether a thing has one value of an attribute, whenever it is asked for."""
    *before, noun = name.split()
    if value in ("true", "false"):
        is_quality = noun.endswith(("able", "ible")) and noun not in words.TRANSIENT
        return is_quality or noun in words.FLAGS
    if value[:1] in "{[" or "," in value.strip(","):
        return False  # several values, or an amount and a place: nothing that excludes another
    pair = (before[-1] if before else "", noun)
    if pair in words.SETTING or pair in words.CONFIGURED_PAIRS or name in words.RECORDED:
        return True
    return is_lasting(noun) and noun not in words.VARIED


# What a sentence of any shape claims of one identified thing: `loan L8411 bears 3 % interest`.
#
# Loan L8411 carries 3 percent interest and runs for 2 years.
# The interest on loan L8411 is fixed at 4 percent.
#
# A claim is an identifier, an attribute beside an amount, and the amount. What says at which
# moment or in which sense it holds (dates, ordinals, `net`, `on admission`) is part of what is
# compared. It is certain only of an attribute that a thing has once and keeps, in a
# clause that says no more.

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
    """Say whether the clause of an amount, or what names the thing, has words of its own.

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
    """Say whether a token is an identifier: `L8411`, or a number behind what it numbers."""
    if token.kind == "id":
        return True
    is_bare = token.kind == "number" and not token.unit and token.text.isdigit()
    return is_bare and at > 0 and str(tokens[at - 1].value) in words.REFERENCES


def _is_circumstance(token: Token) -> bool:
    """Say whether a word says when, where or of which kind an amount is."""
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
    """Say whether a noun ends its group, so that it is no part of another one."""
    return at >= len(tokens) or not _is_noun(tokens, at)


def _is_noun(tokens: Sequence[Token], at: int) -> bool:
    token = tokens[at]
    joins = words.PREPOSITIONS | words.LINKS | words.JOINING | words.MODALS
    return token.kind == "word" and str(token.value) not in joins | VERBS


# Where an item comes from: what says whose setting it tells of where its text does not.
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


def are_of_one_place(a: Item, b: Item, *, is_correction: bool) -> bool:
    """Say whether nothing that stands beside two texts tells them apart.

    A correction is written in another document than what it corrects: of one folder is enough.
    """
    are_parts = not is_correction and not _WHOLE & {a.kind, b.kind}
    return _place(a, are_parts) == _place(b, are_parts)


def are_labelled_alike(a: Item, b: Item) -> bool:
    """Say whether metadata, tags and scope of two items are the same, wherever they come from.

    What names a document (its title, author or address) says where a fact stands, not of what.
    """
    return a.scope == b.scope and _beside_fact(a) == _beside_fact(b)


def _beside_fact(item: Item) -> tuple[object, ...]:
    source, own, tags = _labels(item)
    left = ({pair for pair in one if pair[0] not in _OF_DOCUMENT} for one in (source, own))
    return (*left, tags)


def _place(item: Item, is_part: bool) -> tuple[object, ...]:
    source = item.source
    if source is None:
        return "", "", _labels(item)
    uri = "" if source.source_type == "memory" else (source.uri or "").partition("#")[0]
    where = uri if is_part else uri.rpartition("/")[0]
    return where, plain(source.title or ""), _labels(item)


def _labels(item: Item) -> tuple[_Names, _Names, frozenset[str]]:
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
_TELLING: Final = pattern_set(
    rf"(?i){words}".encode()
    for words in (r"[=:]", r"n['’]t\b", rf"\b(?:of|{'|'.join(sorted(TELLING - {'=', ':'}))})\b")
)


def contradictions(items: Sequence[Item], texts: Mapping[str, str]) -> list[Contradiction]:
    """Return every contradiction found among items that state something, in a fixed order.

    Of two items it is in once, the surest one. Linear in the number of items.
    """
    stating = [item for item in items if item.kind in STATING]
    facts = {fact.item_id: fact for item in stating if (fact := fact_of(item)) is not None}
    found: dict[tuple[str, str], Contradiction] = {}
    read = [record_of(item.id, texts[item.id]) for item in stating]
    records = {one.item_id: one for one in read if one is not None}
    told = [item for item in stating if item.id not in records]
    for one in (
        *_of_facts(stating, facts),
        *_of_records(stating, records, facts),
        *_of_texts(told, texts, facts),
    ):
        known = found.get((one.first, one.second))
        if known is None or (one.is_certain and not known.is_certain):
            found[one.first, one.second] = one
    return list(found.values())


def _of_facts(items: Sequence[Item], facts: Mapping[str, Fact]) -> Iterator[Contradiction]:
    """Yield pairs of facts of one key: each value against the most believed others.

    More than two values are a list: none of them is certain.
    """
    of_key: dict[tuple[str, str, str], list[Item]] = defaultdict(list)
    for item in items:
        if item.id in facts:
            of_key[facts[item.id].key].append(item)
    for stated in of_key.values():
        best: dict[str, Item] = {}
        is_list = len({facts[item.id].value for item in stated}) > 2
        for item in sorted(stated, key=lambda one: belief(one, False)):
            fact = facts[item.id]
            for rival in best.values():
                how = differ(facts[rival.id], fact)
                if how is not False:
                    sure = how is True and not is_list and fact.is_certain
                    sure = sure and facts[rival.id].is_certain and are_labelled_alike(rival, item)
                    yield _pair(rival, item, "value", is_certain=sure)
            if len(best) < _RIVAL_VALUES:
                best.setdefault(fact.value, item)


def _of_records(
    items: Sequence[Item], records: Mapping[str, Record], facts: Mapping[str, Fact]
) -> Iterator[Contradiction]:
    known = {item.id: item for item in items}
    for found in differences(list(records.values())):
        a, b = known[found.first], known[found.second]
        about = _about(a, b)
        if about is not None and not _facts_differ(a, b, facts):
            yield _pair(a, b, "value", is_certain=found.is_certain and about)


def _of_texts(
    items: Sequence[Item], texts: Mapping[str, str], facts: Mapping[str, Fact]
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
            yield _pair(a, b, first.how, is_certain=False)


def _alike(stated: Sequence[Statement]) -> Iterator[tuple[Statement, Statement]]:
    """Yield statements of other values in nearly the same words: they may be about one thing.

    Only among those that tell of the same numbers, dates and names, and that share one of their
    rarest words (the prefix filter of set-similarity joins). A statement that is like more than a
    few others is one of a list.
    """
    stated = [
        one
        for one in stated
        if not one.frame.sort.startswith(("polar", SORT)) and len(one.words) > 1
    ]
    counts = Counter(word for one in stated for word in one.words)
    holders: dict[Hashable, list[int]] = defaultdict(list)
    found: dict[int, list[int]] = defaultdict(list)
    for number, one in enumerate(stated):
        rare = sorted(one.words, key=lambda word: (counts[word], str(word)))
        others: dict[int, None] = {}
        for word in rare[: len(rare) // 2 + 1]:
            held = holders[one.kind, word]
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
    if a.item_id == b.item_id or a.value == b.value or a.words == b.words or _may_be_one(a, b):
        return False
    if a.first not in b.words or b.first not in a.words:
        return False  # another subject, whatever else is said of it
    common, either = len(a.words & b.words), len(a.words | b.words)
    return (common > 1 and 2 * common >= either) or (
        common > 0 and 3 * common >= either and any(map(_is_typed, a.frame.identity))
    )


def _is_typed(told: Hashable) -> bool:
    return isinstance(told, tuple)


def _stated(item: Item, text: str) -> Iterator[Statement]:
    """Yield what the sentences of a note state, of a longer text those of its opening."""
    is_note = len(text) <= _NOTE_CHARACTERS
    read = text if is_note else text[:_OPENING_CHARACTERS]
    most = _NOTE_SENTENCES if is_note else _OPENING_SENTENCES
    corrects = "correction" in item.tags
    for sentence in _SENTENCE.split(read, most)[:most]:
        if _SHORTEST <= len(sentence) <= _LONGEST and _tells(sentence):
            found = read_sentence(sentence, corrects=corrects, is_named=bool(item.subject))
            if found is not None:
                yield from statements_of(item.id, found)
                yield from claims_of(item.id, found)


def _tells(sentence: str) -> bool:
    return bool(_TELLING.Match(sentence.encode("utf-8", "surrogatepass")))


def _of_frame(
    stated: Sequence[Statement],
    known: Mapping[str, Item],
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
            by = None if first.corrects == second.corrects else _corrector(first, second)
            if (is_list and by is None) or _facts_differ(a, b, facts):
                continue
            sure = first.is_certain and second.is_certain
            if by is not None and not is_list:
                sure = sure or (first.is_plain and second.is_plain)
            standing = _standing(first, second, a, b, texts)
            if standing is not None:
                yield _pair(a, b, first.how, by, is_certain=sure and standing)


def _corrector(first: Statement, second: Statement) -> str:
    return first.item_id if first.corrects else second.item_id


def _may_be_one(a: Statement, b: Statement) -> bool:
    if a.token is not None and b.token is not None:
        return may_be_one(a.token, b.token)
    if isinstance(a.value, tuple) and isinstance(b.value, tuple):
        return bool(set(a.value) & set(b.value))  # `Paris` and `Paris, France`
    return False


def _facts_differ(a: Item, b: Item, facts: Mapping[str, Fact]) -> bool:
    """Say whether both items have a structured fact: those were compared, and decide."""
    return a.id in facts and b.id in facts


def _standing(
    first: Statement, second: Statement, a: Item, b: Item, texts: Mapping[str, str]
) -> bool | None:
    """Say whether two items are about one thing: True, False for perhaps, None for no."""
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


def _about(a: Item, b: Item) -> bool | None:
    """Say whether what stands beside two items allows that they are about one thing."""
    named = [(one.subject and plain(one.subject), attribute_of(one)) for one in (a, b)]
    if named[0] != named[1] and all(one[0] or one[1] for one in named):
        return None
    if a.scope != b.scope:
        return None
    titles = [_title(one) for one in (a, b)]
    if any(map(str.isdigit, "".join(titles[0] ^ titles[1]))):
        return None
    return named[0] == named[1] and titles[0] == titles[1]


def _title(item: Item) -> frozenset[str]:
    """Return what the title of an item's source names: numbers, dates, names."""
    title = item.source.title if item.source is not None else None
    return identity_of(f"Of {title} is") if title else frozenset()


def _rest(text: str, sentence: str) -> str:
    before, _, after = text.partition(sentence)
    return f"{before}\n{after}"


def _pair(
    a: Item, b: Item, how: str, correction: str | None = None, *, is_certain: bool
) -> Contradiction:
    first, second = sorted((a, b), key=lambda item: item.position)
    return Contradiction(first.id, second.id, how, correction, is_certain)
