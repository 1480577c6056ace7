"""What claims can be about: topics of data sets, and tools by their names.

A topic names tools, and commands that a shell runs, and how people speak of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Any, Final, Literal

from hansard_collector.evaluation.languages import LANGUAGES, language, words_of
from hansard_collector.evaluation.modality import PhraseTable

Polarity = Literal["success", "failure", "acted"]
# Kinds of phrases that say how a statement is meant; fields of a Language.
MODALITY: Final = (
    "negations", "doubts", "plans", "conditions", "subordinate", "reports", "other_times", "unable",
)  # fmt: skip
_CAMEL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_PART: Final = re.compile(r"[a-z0-9]+")
# Verbs that say of a tool's name that it does something, and not what.
GENERIC: Final = words_of("generic_verbs")
_NO_SUBJECT: Final = words_of("no_subject")


@dataclass(frozen=True, slots=True)
class Pattern:
    """What a result's text states of the outcome."""

    failure: tuple[re.Pattern[str], ...] = ()
    success: tuple[re.Pattern[str], ...] = ()


@dataclass(frozen=True, slots=True)
class _Action:
    """How a text claims that the tool did its work: "I sent", "the email"."""

    objects: tuple[str, ...]
    base: frozenset[str]  # of "could not send"


@dataclass(frozen=True, slots=True)
class ClaimTopic:
    """What a claim is about. `name` is stored and shown; two topics of one name are one."""

    name: str
    tools: tuple[str, ...]  # patterns of tool names, as `tool_key` writes them
    commands: tuple[re.Pattern[str], ...] = ()  # what a shell runs, one command each
    results: Pattern = field(default_factory=Pattern)
    hints: tuple[re.Pattern[str], ...] = ()  # found in every text that runs one of the commands
    has_qualifiers: bool = False  # "the unit tests" are not all of them
    is_tool: bool = False  # a tool by its name

    def matches_tool(self, key: str) -> bool:
        """Return whether a tool, by its key, is one of this topic."""
        return any(fnmatchcase(key, pattern) for pattern in self.tools)


@dataclass(frozen=True, slots=True)
class Predicate:
    """What is said of a subject."""

    polarity: Literal["success", "failure"]
    topic: str | None = None  # said of this topic alone
    is_weak: bool = False  # only after a form of "to be"
    can_be_denied: bool = True


@dataclass(frozen=True, slots=True)
class Words:
    """The phrases of one language: of statements, and of all topics.

    Kinds: `subject` (a topic), `predicate` (a Predicate), `whole` (topic and polarity), `verb` and
    `base` (topic and number of its action), `elsewhere`, and those of modality.
    """

    table: PhraseTable[Any]
    # A sentence that claims something has a word of `acts`, or one of each of the others.
    acts: frozenset[str]
    predicates: frozenset[str]
    subjects: frozenset[str]


@dataclass(frozen=True, slots=True)
class Lexicon:
    """The topics of all data sets, with their phrases by language."""

    topics: Mapping[str, ClaimTopic]
    actions: Mapping[str, tuple[_Action, ...]]  # of a topic, over all languages
    words: Mapping[str, Words]
    digest: str  # of what it was made from


@lru_cache(maxsize=65_536)
def tool_key(name: str) -> str:
    """Return a tool's name in lower case with `_` between its parts: `sendEmail` is `send_email`.

    Of a name with a server before it (`mcp__mail__send`, `mail.send`) all parts stay.
    """
    return "_".join(parts_of(name))


@lru_cache(maxsize=65_536)
def parts_of(name: str) -> tuple[str, ...]:
    """Return the parts of a tool's name, lower case."""
    return tuple(_PART.findall(_CAMEL.sub("_", name).lower()))


def subject_of(name: str) -> str | None:
    """Return what a tool such as `run_pipeline` runs; None where its name does not show it."""
    parts = parts_of(name)
    rest = parts[1:]
    if len(parts) < 2 or parts[0] not in GENERIC or not _NO_SUBJECT.isdisjoint(rest):
        return None
    return " ".join(rest)


def lexicon_of(sets: Iterable[Mapping[str, Any]], *, digest: str = "") -> Lexicon:
    """Compile data sets, as `hansard.adapters` reads them. Raises re.error for a bad pattern."""
    topics: dict[str, ClaimTopic] = {}
    actions: dict[str, tuple[_Action, ...]] = {}
    tables = {name: _empty_table(name) for name in LANGUAGES}
    for entry in (entry for one in sets for entry in one["topics"]):
        name = entry["topic"]
        topics[name] = _merged(topics.get(name), _topic(entry))
        for lang, phrases in entry.get("says", {}).items():
            if lang in tables:
                actions[name] = _add_words(tables[lang], name, phrases, actions.get(name, ()))
    return Lexicon(topics, actions, {k: _words(v) for k, v in tables.items()}, digest)


def _topic(entry: Mapping[str, Any]) -> ClaimTopic:
    results = entry.get("results", {})
    return ClaimTopic(
        name=entry["topic"],
        tools=tuple(entry.get("tools", ())),
        commands=tuple(re.compile(one) for one in entry.get("commands", ())),
        hints=tuple(re.compile(_loose(one)) for one in entry.get("commands", ())),
        results=Pattern(
            tuple(re.compile(one, re.I | re.M) for one in results.get("failure", ())),
            tuple(re.compile(one, re.I | re.M) for one in results.get("success", ())),
        ),
        has_qualifiers=bool(entry.get("qualifiers")),
    )


def _loose(pattern: str) -> str:
    """Return a pattern of a command anywhere in a text."""
    return rf"(?:^|[^\w.-]){pattern[1:]}" if pattern.startswith("^") else pattern


def _merged(one: ClaimTopic | None, other: ClaimTopic) -> ClaimTopic:
    """Return a topic that two sets speak of: a user's set adds to a shipped one."""
    if one is None:
        return other
    return ClaimTopic(
        name=one.name,
        tools=(*one.tools, *other.tools),
        commands=(*one.commands, *other.commands),
        hints=(*one.hints, *other.hints),
        results=Pattern(
            (*one.results.failure, *other.results.failure),
            (*one.results.success, *other.results.success),
        ),
        has_qualifiers=one.has_qualifiers or other.has_qualifiers,
    )


def _empty_table(name: str) -> PhraseTable[Any]:
    """Return a language's phrases without any topic."""
    table: PhraseTable[Any] = PhraseTable()
    known = language(name)
    for phrases, polarity, is_weak in (
        (known.success, "success", False),
        (known.weak_success, "success", True),
        (known.failure, "failure", False),
        (known.weak_failure, "failure", True),
    ):
        for phrase in phrases:
            can = phrase not in known.undeniable
            predicate = Predicate(polarity, None, is_weak, can)  # type: ignore[arg-type]  # one of two
            table.add("predicate", (phrase,), predicate)
    for kind in MODALITY:
        table.add(kind, getattr(known, kind), kind)
    return table


def _add_words(
    table: PhraseTable[Any], name: str, phrases: Mapping[str, Any], known: tuple[_Action, ...]
) -> tuple[_Action, ...]:
    table.add("subject", phrases.get("subjects", ()), name)
    table.add("elsewhere", phrases.get("elsewhere", ()), name)
    for polarity in ("success", "failure"):
        table.add("predicate", phrases.get(polarity, ()), Predicate(polarity, name))
        table.add("whole", phrases.get(f"whole_{polarity}", ()), (name, polarity))
    for action in phrases.get("acted", ()):
        number = len(known)
        table.add("verb", action["verbs"], (name, number))
        table.add("base", action.get("bases", ()), (name, number))
        known = (*known, _Action(tuple(action["objects"]), frozenset(action.get("bases", ()))))
    return known


def _words(table: PhraseTable[Any]) -> Words:
    return Words(
        table,
        acts=table.key_words("whole", "verb", "base"),
        predicates=table.key_words("predicate"),
        subjects=table.key_words("subject"),
    )


def topic_of_tool(name: str) -> ClaimTopic:
    """Return a tool as a topic of its own."""
    return ClaimTopic(name=name, tools=(tool_key(name),), is_tool=True)


def known_tools(names: Sequence[str]) -> dict[str, str]:
    """Return tools by their keys; of two with one key the first."""
    found: dict[str, str] = {}
    for name in names:
        if key := tool_key(name):
            found.setdefault(key, name)
    return found
