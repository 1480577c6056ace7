"""Claims that a text makes about the outcomes of tools. Pure, deterministic, linear in the text.

A claim is a statement of the author's own, in the indicative, about now: "all tests pass", "the
deploy failed", "I deleted the file". Plans, doubts, conditions, questions, quotes, and what others
said or what was so earlier are none. What is not understood is no claim: nothing is guessed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import partial
from typing import Final, NamedTuple

from hansard_collector.evaluation.actions import ActionTable, acted_in
from hansard_collector.evaluation.languages import (
    Language,
    is_of_plans,
    language,
    language_of,
    words_of,
)
from hansard_collector.evaluation.modality import ModalityHit, PhraseTable, Scopes, scopes_of
from hansard_collector.evaluation.sentences import (
    QUOTED,
    ClaimSentence,
    ClaimToken,
    sentences,
    words_in,
)
from hansard_collector.evaluation.topics import (
    ClaimTopic,
    Lexicon,
    Polarity,
    Predicate,
    known_tools,
    parts_of,
    subject_of,
    topic_of_tool,
)

MOST_CLAIMS: Final = 50  # of one text
_LANGUAGE_CHARS: Final = 4_000  # of a text that tell its language where a sentence does not
_WORD: Final = re.compile(r"\w+")
_SHORT: Final = 20  # tokens of a sentence that may be said again
_MOST_READ: Final = 5_000
_MOST_GAP: Final = 9  # tokens between a subject and what is said of it
_TOOL_WORDS: Final = words_of("tool_nouns")
_ARTICLES: Final = words_of("articles")
_PLAIN_QUALIFIERS: Final = words_of("plain_qualifiers")
_PARTIAL: Final = words_of("partial")
_ALL: Final = words_of("every")
_NUMBERS: Final = words_of("numbers")


# A name that only programs use: of a tool of which nothing is recorded, maybe.
_IDENTIFIER: Final = re.compile(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)+")


@dataclass(frozen=True, slots=True)
class Claim:
    """One claim. `start` and `end` are places of its sentence in the text."""

    topic: ClaimTopic
    polarity: Polarity
    sentence: str  # the sentence, on one line
    start: int
    end: int
    language: str
    qualifier: str = ""  # a part that is spoken of: "unit" of "the unit tests"


FoundClaim = tuple[ClaimTopic, Polarity, str]  # of which topic, what, and of which part of it


class _Subject(NamedTuple):
    start: int
    end: int
    topic: ClaimTopic
    is_plain_word: bool  # a tool called by an everyday word


@dataclass(frozen=True, slots=True)
class Tools:
    """The tools that a text may speak of by their names."""

    topics: Mapping[str, ClaimTopic]  # by key
    names: PhraseTable[str]  # kinds: `name`, and `derived` from one
    actions: ActionTable
    # A sentence that claims something has a word of `acts`, or one of each of the others.
    acts: frozenset[str]
    predicates: frozenset[str]
    subjects: frozenset[str]
    # What short sentences claim, by their tokens and language: agents repeat them.
    read: dict[tuple[tuple[str, ...], str], tuple[FoundClaim, ...]] = field(default_factory=dict)

    def remember(
        self, sentence: tuple[tuple[str, ...], str], claims: tuple[FoundClaim, ...]
    ) -> None:
        """Keep what a sentence claims; all are forgotten when they are very many."""
        if len(self.read) >= _MOST_READ:
            self.read.clear()
        self.read[sentence] = claims

    def may_be_spoken_of(self, words: Set[str]) -> bool:
        """Return whether a sentence with these words may claim anything."""
        if not self.acts.isdisjoint(words):
            return True
        if self.predicates.isdisjoint(words):
            return False
        return not self.subjects.isdisjoint(words) or "_" in "".join(words)


def tools_of(names: Iterable[str], lexicon: Lexicon) -> Tools:
    """Return tools as a text may speak of them; made once for many texts."""
    known = known_tools(sorted(names))
    table: PhraseTable[str] = PhraseTable()
    for key, name in known.items():
        written = {name.lower(), key, key.replace("_", "-")}
        words = sorted(one for one in written if " " not in one and "|" not in one)
        table.add("name", words, key)
        if (subject := subject_of(name)) is not None:
            table.add("derived", (subject,), key)
    actions = ActionTable.of(known)
    every = lexicon.words.values()
    first = table.key_words("name", "derived").union(*(one.subjects for one in every))
    return Tools(
        topics={key: topic_of_tool(name) for key, name in known.items()},
        names=table,
        actions=actions,
        acts=_begun(actions.words.union(*(one.acts for one in every))),
        predicates=_begun(frozenset().union(*(one.predicates for one in every))),
        subjects=_begun(first),
    )


def _begun(words: Iterable[str]) -> frozenset[str]:
    """Return the words as a quick look at a text finds them: up to a mark within them."""
    return frozenset(match[0] for word in words if (match := _WORD.search(word)))


def claims_of(text: str, lexicon: Lexicon, tools: Tools) -> list[Claim]:
    """Return the claims of a text, in its order, at most 50; each once in a sentence."""
    found: list[Claim] = []
    if not tools.may_be_spoken_of(frozenset(words_in(text))):
        return found
    usual = partial(_language_of_text, text)
    for sentence in sentences(text, tools.may_be_spoken_of):
        if sentence.is_question or is_of_plans(sentence.heading):
            continue
        words = tuple(token.text for token in sentence.tokens)
        name = language_of(words, usual=usual)
        if name is None:
            continue
        claims = tools.read.get((words, name))
        if claims is None:
            claims = tuple(_Reader(sentence, lexicon, tools, language(name)).claims())
            if len(words) <= _SHORT:
                tools.remember((words, name), claims)
        found += [
            Claim(topic, polarity, sentence.text, sentence.start, sentence.end, name, qualifier)
            for topic, polarity, qualifier in claims
        ]
        if len(found) >= MOST_CLAIMS:
            break
    return found[:MOST_CLAIMS]


def _language_of_text(text: str) -> str | None:
    """Return the language of a text; looked for where a sentence does not show its own."""
    return language_of(words_in(text[:_LANGUAGE_CHARS]))


class _Reader:
    """Reads one sentence."""

    def __init__(
        self, sentence: ClaimSentence, lexicon: Lexicon, tools: Tools, known: Language
    ) -> None:
        self._tokens: Sequence[ClaimToken] = sentence.tokens
        self._lexicon = lexicon
        self._tools = tools
        self._language = known
        self._hits = lexicon.words[known.name].table.find(self._tokens)
        masked = {
            at
            for kind in ("whole", "unable")
            for hit in self._hits.get(kind, ())
            for at in range(hit.start, hit.end)
        }
        self._scopes: Scopes = scopes_of(self._tokens, known, self._hits, masked)

    def claims(self) -> Iterator[FoundClaim]:
        """Yield what is claimed; of one topic and polarity the first."""
        seen: set[tuple[str, str, str]] = set()
        every = list(self._found())
        topics = [(topic, polarity) for topic, polarity, _ in every if not topic.is_tool]
        for topic, polarity, qualifier in every:
            if topic.is_tool and any(
                wide.matches_tool(topic.tools[0]) and polarity == other for wide, other in topics
            ):
                continue  # the topic says the same, of more tools
            key = (topic.name, polarity, qualifier)
            if key in seen or (topic.name, "failure", qualifier) in seen:
                continue
            seen.add(key)
            yield topic, polarity, qualifier

    def _found(self) -> Iterator[FoundClaim]:
        for hit in self._hits.get("whole", ()):
            name, polarity = hit.value
            if not self._scopes.is_blocked(hit.start, hit.end):
                yield self._lexicon.topics[name], polarity, ""
        subjects = self._subjects()
        predicates = self._hits.get("predicate", ())
        for number, subject in enumerate(subjects):
            after = subjects[number + 1].start if number + 1 < len(subjects) else 1 << 30
            for predicate in predicates:
                if predicate.start < subject.end:
                    continue
                polarity_found = self._polarity_of(subject, predicate, before=after)
                if polarity_found is not None:
                    yield subject.topic, *polarity_found
                    break
        for acted in acted_in(
            self._tokens, self._language, self._hits, self._lexicon, self._tools.actions
        ):
            if not self._scopes.is_blocked(acted.start, acted.end):
                topics = self._tools.topics if acted.is_tool else self._lexicon.topics
                yield topics[acted.topic], acted.polarity, ""

    def _subjects(self) -> list[_Subject]:
        found: dict[int, _Subject] = {}
        named_hits = self._tools.names.find(self._tokens)
        for hit in self._hits.get("subject", ()):
            found[hit.start] = _Subject(hit.start, hit.end, self._lexicon.topics[hit.value], False)
        for hit in named_hits.get("derived", ()):
            topic = self._tools.topics[hit.value]
            found.setdefault(hit.start, _Subject(hit.start, hit.end, topic, False))
        for hit in named_hits.get("name", ()):
            topic = self._tools.topics[hit.value]
            named = self._named(hit, topic)
            if named is None:
                continue
            rival = found.get(hit.start)
            if rival is None or not named.is_plain_word:
                found[hit.start] = named
        for at, token in enumerate(self._tokens):
            if at not in found and _IDENTIFIER.fullmatch(token.text):
                topic = topic_of_tool(token.text)
                hit = ModalityHit(at, at + 1, topic.name)
                found.setdefault(at, self._named(hit, topic) or _Subject(at, at + 1, topic, False))
        return sorted(found.values())

    def _named(self, hit: ModalityHit[str], topic: ClaimTopic) -> _Subject | None:
        """Return a tool's name as a subject; a plain word only where it is one by itself."""
        end = hit.end
        has_noun = False
        while end < len(self._tokens) and self._tokens[end].text in _TOOL_WORDS:
            end, has_noun = end + 1, True
        before = self._tokens[hit.start - 1].text if hit.start else ""
        is_name = len(parts_of(topic.name)) > 1 or has_noun or before in _TOOL_WORDS
        if is_name:
            return _Subject(hit.start, end, topic, False)
        if hit.start and before not in _ARTICLES and before not in (",", ";", ":", "and", "but"):
            return None
        return _Subject(hit.start, end, topic, True)

    def _polarity_of(
        self, subject: _Subject, hit: ModalityHit[Predicate], *, before: int
    ) -> tuple[Polarity, str] | None:
        """Return the polarity of what is said of a subject, and of which part of it."""
        predicate, tokens = hit.value, self._tokens
        if predicate.topic is not None and predicate.topic != subject.topic.name:
            return None
        if hit.start - subject.end > _MOST_GAP or hit.start > before:
            return None
        gap = tokens[subject.end : hit.start]
        negations = self._scopes.negations(subject.end, hit.start)
        if not self._joins(subject, gap, negations):
            return None
        if predicate.is_weak and not self._has_be(subject, hit, gap):
            return None
        if self._goes_on(hit) or (gap and gap[-1].text == "to"):
            return None
        if self._scopes.is_blocked(subject.start, hit.end):
            return None
        return self._polarity(subject, predicate, negations)

    def _polarity(
        self, subject: _Subject, predicate: Predicate, inner: int
    ) -> tuple[Polarity, str] | None:
        none, qualifier, is_partial, outer = self._before(subject)
        if inner + outer + none > 1:
            return None
        if predicate.polarity == "failure":
            if inner or outer:
                return None
            return ("success", qualifier) if none else ("failure", qualifier)
        if inner or outer or none:
            return ("failure", qualifier) if predicate.can_be_denied else None
        return None if is_partial else ("success", qualifier)

    def _before(self, subject: _Subject) -> tuple[int, str, bool, int]:
        """Read the words before a subject: none of them, which part, a share, not all."""
        none = outer = 0
        qualifier, has_all, has_number, is_partial = "", False, False, False
        for at in range(subject.start - 1, max(-1, subject.start - 6), -1):
            word = self._tokens[at].text
            if word in self._language.none:
                none = 1
            elif word == "not" or word in ("nicht", "pas"):
                outer = 1
            elif word in _PARTIAL:
                is_partial = True
            elif word.isdigit() or word in _NUMBERS:
                has_number = True
            elif word in _ALL:
                has_all = True
            elif word in _PLAIN_QUALIFIERS or word in _ARTICLES:
                continue
            elif word.isalpha() and not qualifier and at == subject.start - 1:
                qualifier = word
            else:
                break
        has_qualifier = subject.topic.has_qualifiers and qualifier
        is_share = is_partial or (has_number and not has_all)
        return none, qualifier if has_qualifier else "", is_share, outer

    def _joins(self, subject: _Subject, gap: Sequence[ClaimToken], negations: int) -> bool:
        """Return whether nothing between a subject and a predicate makes it another one's."""
        known = self._language
        at = 0
        while at < len(gap):
            word = gap[at].text
            following = gap[at + 1].text if at + 1 < len(gap) else ""
            is_colon = word in (":", "—", "–") and not following
            is_comma = word == "," and following in ("and", "und", "et")
            is_filler = word in known.fillers or self._scopes.is_negation(subject.end + at)
            if is_colon or is_comma or is_filler:
                at += 1
            elif word in known.prepositions and not subject.is_plain_word:
                at = _after_place(gap, at + 1, known)
            else:
                return False
        return True

    def _has_be(
        self, subject: _Subject, hit: ModalityHit[Predicate], gap: Sequence[ClaimToken]
    ) -> bool:
        if any(token.text in self._language.be for token in gap):
            return True
        is_end = hit.end == len(self._tokens) or self._tokens[hit.end].text in ",;.—–(:"
        return subject.start <= 1 and not gap and is_end and not subject.is_plain_word

    def _goes_on(self, hit: ModalityHit[Predicate]) -> bool:
        """Return whether a verb has an object, and so another meaning."""
        if hit.end >= len(self._tokens) or hit.end - hit.start != 1:
            return False
        following = self._tokens[hit.end].text
        if following == QUOTED:
            return hit.value.polarity == "success"
        if following == "as":
            return self._tokens[hit.end + 1 : hit.end + 2] != () and self._tokens[
                hit.end + 1
            ].text not in ("expected", "intended", "designed", "it", "usual", "before")
        return following in self._language.objects


def _after_place(gap: Sequence[ClaimToken], at: int, known: Language) -> int:
    """Return where the words of a place end: up to three that are no verbs we know of."""
    for _ in range(3):
        if at < len(gap) and gap[at].text not in known.fillers and gap[at].text not in ",;:":
            at += 1
    return at
