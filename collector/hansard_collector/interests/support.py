"""Whether a topic is what its entries say, and whether two topics are one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from hansard_collector.interests.roots import roots
from hansard_collector.interests.topics import Entry, Topic
from hansard_collector.judges.embedders import PIECES, cosine
from hansard_compiler.embedder import Embedder, Vector
from hansard_compiler.words import WORD

_MOST_LACKING: Final = 3  # of so many words of a topic less than one may be the extractor's own
_SAME_PCT: Final = 60  # of the words of two topics
# From which cosine on two topics are one; measured with `python -m bench interests`.
_NEAR: Final = {PIECES: 0.8, "wordllama/1": 0.85}
_NEAR_BY_MODEL: Final = 0.9


def supporting(topic: Topic, entries: Sequence[Entry]) -> list[str]:
    """Return the ids of the entries that support a topic, in their order; none: it has no support.

    One entry has to say it: nearly all of the topic's words (more than two thirds), and every name
    in it. Words of two entries do not add up, as they would in "escalation scoring with FTS5".
    Cited entries are held against the topic; where it cites none, all are.
    """
    wanted = frozenset(roots(topic.text))
    if not wanted:
        return []
    names = frozenset(term for word in WORD.findall(topic.text) if _is_name(word)
                      for term in roots(word))  # fmt: skip
    cited = entries
    if topic.entries is not None:
        ids = frozenset(topic.entries)
        cited = [one for one in entries if one.memory_id in ids]
    return [one.memory_id for one in cited if _says(frozenset(roots(one.text)), wanted, names)]


def is_one_topic(a: str, b: str) -> bool:
    """Whether two topics share their words: the same stems, most of them, or one within the other.

    A single word is no part of another topic: "search" is wider than "full text search".
    """
    words = [frozenset(roots(one)) for one in (a, b)]
    if not all(words):
        return a.strip().casefold() == b.strip().casefold()
    common = len(words[0] & words[1])
    least = min(map(len, words))
    if least > 1 and common == least:
        return True
    return 100 * common >= _SAME_PCT * len(words[0] | words[1])


class Likeness:
    """Finds topics that are one: by their words and, with an embedder, by meaning.

    Each text is embedded once for as long as it lives.
    """

    def __init__(self, embedder: Embedder | None) -> None:
        self._embedder = embedder
        self._vectors: dict[str, Vector] = {}

    def find(self, topic: str, known: Sequence[str]) -> int | None:
        """Return the place of the known topic that is the same one; None for a new topic.

        Raises HansardError where the embedder does.
        """
        for place, one in enumerate(known):
            if is_one_topic(topic, one):
                return place
        if self._embedder is None or not known:
            return None
        self._embed(self._embedder, [topic, *known])
        first = self._vectors[topic]
        near = [cosine(first, self._vectors[one]) for one in known]
        best = max(range(len(near)), key=near.__getitem__)
        least = _NEAR.get(self._embedder.name, _NEAR_BY_MODEL)
        return best if near[best] >= least else None

    def _embed(self, embedder: Embedder, texts: Sequence[str]) -> None:
        new = [one for one in dict.fromkeys(texts) if one not in self._vectors]
        self._vectors.update(zip(new, embedder(new), strict=True))


def _says(said: frozenset[str], wanted: frozenset[str], names: frozenset[str]) -> bool:
    lacking = len(wanted - said)
    return names <= said and lacking * _MOST_LACKING < len(wanted)


def _is_name(word: str) -> bool:
    """Say whether a word is written like a name: FTS5, SQLite, gpt4; not as a word that begins."""
    has_digit = any(map(str.isdigit, word))
    return has_digit or any(map(str.isupper, word[1:]))
