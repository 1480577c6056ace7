"""Claims of actions: "I sent the email", "the refund was issued", "I could not close the ticket".

They are found by the verbs and objects of data sets, and by the names of tools: `send_email` is
what "I have sent you an email" says. The author acts, or no one is named; others' acts are none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, NamedTuple

from hansard_collector.evaluation.languages import Language, words_of
from hansard_collector.evaluation.modality import ModalityHit
from hansard_collector.evaluation.sentences import ClaimToken
from hansard_collector.evaluation.topics import GENERIC, Lexicon, Polarity, parts_of

_REACH: Final = 7  # tokens between a verb and its object
_MARKS: Final = frozenset(",;:()—–|")
_ADVERBS: Final = words_of("adverbs")
_ALSO: Final = frozenset({"and", "und", "et", "y", ",", "then", "&"})
_IRREGULAR: Final[Mapping[str, str]] = {
    "sent": "send", "written": "write", "wrote": "write", "built": "build", "found": "find",
    "got": "get", "took": "take", "taken": "take", "gave": "give", "given": "give", "made": "make",
    "read": "read", "put": "put", "set": "set", "cut": "cut", "reset": "reset", "paid": "pay",
    "bought": "buy", "sold": "sell", "held": "hold", "left": "leave", "kept": "keep",
    "drawn": "draw", "drew": "draw", "shut": "shut", "began": "begin", "brought": "bring",
    "chosen": "choose", "chose": "choose", "spun": "spin", "withdrew": "withdraw",
    "withdrawn": "withdraw", "overwritten": "overwrite", "rebuilt": "rebuild", "split": "split",
    "undone": "undo", "undid": "undo", "hidden": "hide", "hid": "hide", "frozen": "freeze",
    "broken": "break", "spoken": "speak", "told": "tell", "taught": "teach", "caught": "catch",
}  # fmt: skip
_SAME: Final[Mapping[str, str]] = {"mail": "email", "emails": "email", "mails": "email"}


class Acted(NamedTuple):
    """An action that is claimed: of a topic, or of a tool by its key."""

    topic: str
    is_tool: bool
    polarity: Polarity
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class ActionTable:
    """What tools do by their names: the verbs in them, each with its tools and their objects."""

    by_verb: Mapping[str, Sequence[tuple[str, frozenset[str]]]]
    words: frozenset[str]  # forms of these verbs

    @classmethod
    def of(cls, tools: Mapping[str, str]) -> ActionTable:
        """Return the table of tools, from {key: name}."""
        found: dict[str, list[tuple[str, frozenset[str]]]] = {}
        for key, name in tools.items():
            parts = parts_of(name)
            for at, part in enumerate(parts):
                if part in GENERIC or len(part) < 3:
                    continue
                rest = frozenset(_singular(p) for p in parts[:at] + parts[at + 1 :])
                found.setdefault(part, []).append((key, rest))
        return cls(found, frozenset(form for verb in found for form in _forms(verb)))


def acted_in(
    tokens: Sequence[ClaimToken],
    known: Language,
    found: Mapping[str, Sequence[ModalityHit[Any]]],
    lexicon: Lexicon,
    actions: ActionTable,
) -> Iterator[Acted]:
    """Yield the actions that a sentence claims to have been done, or not to have been possible."""
    unable = [(hit.start, hit.end) for hit in found.get("unable", ())]
    yield from _unable_in(tokens, known, found, lexicon, actions, unable)
    covered = {at for start, end in unable for at in range(start, end + 4)}
    context = _Context(tokens, known)
    hits = [(hit.start, hit.end, hit.value) for hit in found.get("verb", ())]
    done: list[int] = []  # ends of verbs of the author's own
    for start, end, (topic, number) in sorted(hits):
        if start not in covered:
            objects = lexicon.actions[topic][number].objects
            if context.is_done(start, end, _Objects.of(objects), done):
                done.append(end)
                yield Acted(topic, False, "acted", *context.reach(start, end))
    if known.name != "en":
        return
    for at, token in enumerate(tokens):
        if at in covered:
            continue
        for key, rest in _tools_of_verb(token.text, actions):
            if context.is_done(at, at + 1, _Objects(rest), done):
                done.append(at + 1)
                yield Acted(key, True, "acted", *context.reach(at, at + 1))


def _tools_of_verb(word: str, actions: ActionTable) -> Iterator[tuple[str, frozenset[str]]]:
    for lemma in lemmas(word):
        if lemma != word or word in _IRREGULAR:
            yield from actions.by_verb.get(lemma, ())


def _unable_in(
    tokens: Sequence[ClaimToken],
    known: Language,
    found: Mapping[str, Sequence[ModalityHit[Any]]],
    lexicon: Lexicon,
    actions: ActionTable,
    unable: Sequence[tuple[int, int]],
) -> Iterator[Acted]:
    for start, end in unable:
        subject = {token.text for token in tokens[max(0, start - 4) : start]}
        is_mine = bool(subject & known.self) or start == 0 or known.name in ("fr", "es", "de")
        near = range(max(0, start - 6), min(len(tokens), end + 5))
        nouns = {_singular(tokens[at].text) for at in near}
        is_passive = tokens[end : end + 1] != () and tokens[end].text == "be"
        if not is_mine and not is_passive:
            continue
        window = range(end, end + 5) if known.name == "en" else near
        for hit in found.get("verb" if is_passive else "base", ()):
            if hit.start not in window:
                continue
            topic, number = hit.value
            if _Objects.of(lexicon.actions[topic][number].objects).is_in(nouns):
                yield Acted(topic, False, "failure", start, end)
        if known.name != "en":
            continue
        for token in tokens[end : end + 3]:
            lemma_set = lemmas(token.text) if is_passive else {token.text}
            for key, rest in (one for lemma in lemma_set for one in actions.by_verb.get(lemma, ())):
                if _Objects(rest).is_in(nouns):
                    yield Acted(key, True, "failure", start, end)


@dataclass(frozen=True, slots=True)
class _Objects:
    """The objects of an action: all of a tool's name, or any of a set's."""

    every: frozenset[str] = frozenset()
    some: frozenset[str] = frozenset()
    is_any: bool = False

    @classmethod
    def of(cls, objects: Sequence[str]) -> _Objects:
        if "*" in objects:
            return cls(is_any=True)
        return cls(some=frozenset(_singular(one) for one in objects))

    def is_in(self, nouns: set[str]) -> bool:
        if self.is_any or (not self.some and not self.every):
            return True
        return bool(self.some & nouns) if self.some else self.every <= nouns


@dataclass(frozen=True, slots=True)
class _Context:
    """The context of a verb: whose act it is, and on what."""

    tokens: Sequence[ClaimToken]
    known: Language

    def is_done(self, start: int, end: int, objects: _Objects, done: Sequence[int]) -> bool:
        """Return whether a verb names an act of the author, or of nobody, on these objects."""
        if self._is_active(start, done):
            return objects.is_in(self._nouns(start, end))
        if objects.is_any:
            return False
        return self._is_passive(start, end, objects)

    def reach(self, start: int, end: int) -> tuple[int, int]:
        """Return the tokens that must be literal."""
        return max(0, start - 4), end

    def _nouns(self, start: int, end: int) -> set[str]:
        before, after = start - 6 if self.known.name != "en" else start, end + _REACH
        near = self.tokens[max(0, before) : after]
        found: set[str] = set()
        for token in near:
            if token.text in ";:()—–" and found:
                break
            found.add(_singular(token.text))
        return found

    def _is_active(self, start: int, done: Sequence[int]) -> bool:
        if start == 0:
            return self.known.name == "en"  # "Deleted the file."
        reach = 4 if self.known.name == "en" else 8
        for at in range(start - 1, max(-1, start - 1 - reach), -1):
            word = self.tokens[at].text
            if word in self.known.self:
                return True
            if word in ("not", "nicht", "never", "pas", "no", "to", "be", "being"):
                return False
            if word in _ALSO:
                if any(0 <= at - end <= _REACH for end in done) or self._follows_self(at):
                    return True
                continue
            if self.known.name == "en" and word not in _ADVERBS:
                return False
        return False

    def _follows_self(self, at: int) -> bool:
        """Return whether the clause before it begins with the author: "I looked, and deleted"."""
        return any(
            token.text in self.known.self and number <= 1
            for number, token in enumerate(self.tokens[:at])
        )

    def _is_passive(self, start: int, end: int, objects: _Objects) -> bool:
        between = self.known.passive | _ADVERBS | self.known.fillers
        has_form, at = False, start - 1
        while at >= 0 and self.tokens[at].text in between:
            has_form = has_form or self.tokens[at].text in self.known.passive
            at -= 1
        nouns = {_singular(token.text) for token in self.tokens[max(0, at - 5) : at + 1]}
        following = self.tokens[end].text if end < len(self.tokens) else ""
        if following in ("by", "von", "par", "por"):
            return False
        is_short = end == len(self.tokens) and len(self.tokens) <= 5 and at == start - 1
        return (has_form or is_short) and at >= 0 and objects.is_in(nouns)


def _forms(verb: str) -> Iterator[str]:
    """Yield the forms in which a verb of a tool's name may be said."""
    yield from (verb, f"{verb}ed", f"{verb}d", f"{verb}{verb[-1]}ed", f"{verb[:-1]}ied")
    yield from (form for form, base in _IRREGULAR.items() if base == verb)


@lru_cache(maxsize=20_000)
def lemmas(word: str) -> frozenset[str]:
    """Return what a form of an English verb may be a form of: `cancelled`, cancel among others."""
    found = {word}
    if word in _IRREGULAR:
        found.add(_IRREGULAR[word])
    if word.endswith("ied"):
        found.add(word[:-3] + "y")
    elif word.endswith("ed") and len(word) > 4:
        stem = word[:-2]
        found |= {stem, stem + "e"}
        if len(stem) > 2 and stem[-1] == stem[-2]:
            found.add(stem[:-1])
    return frozenset(found)


@lru_cache(maxsize=20_000)
def _singular(word: str) -> str:
    word = _SAME.get(word, word)
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith("s") and not word.endswith(("ss", "us", "is")) and len(word) > 3:
        return word[:-1]
    return word
