"""One classifier interface for three tasks: topics of stories, contradictions, risk of commands.

A question names its task and its labels; the verdict names one of them with a score. The offline
defaults are deterministic: the same on every machine, without a network. A model may stand in their
place; the caller stores the classifier's name beside its verdict.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal, Protocol

from hansard_compiler.words import WORD, is_dense, stem, terms_of

Task = Literal["topic", "contradiction", "irreversible"]
CONTRADICTS: Final = "contradicts"  # the labels of a contradiction
AGREES: Final = "agrees"
UNRELATED: Final = "unrelated"
IRREVERSIBLE: Final = "irreversible"  # the labels of the risk of a command
REVERSIBLE: Final = "reversible"


@dataclass(frozen=True, slots=True)
class ClassifierQuestion:
    """A text to be classified. Secrets have been removed from it: a classifier may be remote."""

    task: Task
    text: str  # a story's title; the older of two statements; a command
    labels: Sequence[str]
    other: str = ""  # of a contradiction: the newer statement
    subject: str = ""  # of a contradiction: what both are about, where both name the same


@dataclass(frozen=True, slots=True)
class ClassifierVerdict:
    """The verdict on one question."""

    label: str | None  # one of the question's; None: none of them fits
    score: float  # confidence, 0 to 1
    reason: str = ""  # the rule or the words that decided, without recorded content


class Classifier(Protocol):
    """Returns a verdict for a question. Raises HansardError where it cannot."""

    @property
    def name(self) -> str:
        """Its name and version, for the record of each call."""

    def __call__(self, question: ClassifierQuestion) -> ClassifierVerdict: ...


@dataclass(frozen=True, slots=True)
class WordOverlap:
    """The offline classifier of topics: the share of a label's words that occur in the text.

    "Rounding" and "rounded" are one word; stop words do not count. It looks at nothing but this
    text, so that a score means the same whatever else is classified with it; BM25 would weigh
    rarity. Of other tasks it knows nothing: its label is None then.
    """

    name: str = "word-overlap/1"

    def __call__(self, question: ClassifierQuestion) -> ClassifierVerdict:
        """Return the nearest label; of equally near ones that with more words, then the first."""
        if question.task != "topic":
            return ClassifierVerdict(None, 0.0, "this classifier knows topics only")
        text_words = frozenset(_words(question.text))
        nearest, best = None, (0.0, 0)
        for label in question.labels:
            label_words = frozenset(_words(label))
            common = len(label_words & text_words)
            if common and (common / len(label_words), common) > best:
                nearest, best = label, (common / len(label_words), common)
        return ClassifierVerdict(nearest, best[0])


def _words(text: str) -> Iterator[str]:
    """Yield the stems of a text's words, and for scripts without spaces its pairs of characters.

    Names are taken whole, unlike in a search: an open letter on AI is not about OpenAI.
    """
    for word in WORD.findall(text):
        found = terms_of(word)
        if len(found) > 1 and not is_dense(found[0]):
            yield stem(found[-1])  # of an identifier: behind its parts, all of it
        else:
            yield from found
