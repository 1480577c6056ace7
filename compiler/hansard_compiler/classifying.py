"""Which of several labels a text is about, and how surely: one interface for whoever must ask.

A classifier is told labels in plain words and answers with the nearest. The built-in one compares
words: the same on every machine, without a network, and explained in a sentence. A model may stand
in its place; whoever asks keeps the classifier's name beside its answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from hansard_compiler.words import WORD, is_dense, stem, terms_of


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a classifier said of one text."""

    label: str | None  # the nearest, as it was given; None: the text is about none of them
    score: float  # how surely, 0 to 1


class Classifier(Protocol):
    """Says which label a text is about. Raises HansardError where it cannot say."""

    @property
    def name(self) -> str:
        """Its name and version, for the record of each call."""

    def __call__(self, text: str, labels: Sequence[str]) -> Verdict: ...


@dataclass(frozen=True, slots=True)
class WordOverlap:
    """The built-in classifier: the share of a label's words that the text says.

    "Rounding" and "rounded" are one word, stop words none. It looks at nothing but this text, so
    that a score means the same whatever else is classified with it; BM25 would weigh rarity.
    """

    name: str = "word-overlap/1"

    def __call__(self, text: str, labels: Sequence[str]) -> Verdict:
        """Return the nearest label; of several as near the one that says more, then the first."""
        said = frozenset(_words(text))
        nearest, best = None, (0.0, 0)
        for label in labels:
            wanted = frozenset(_words(label))
            common = len(wanted & said)
            if common and (common / len(wanted), common) > best:
                nearest, best = label, (common / len(wanted), common)
        return Verdict(nearest, best[0])


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
