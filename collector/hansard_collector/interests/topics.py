"""What extractors of topics get and return."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import Final, Protocol

from hansard_compiler.words import WORD, is_dense, stem, terms_of

MOST_TOPICS: Final = 5  # of one extraction
LONGEST_TOPIC: Final = 120  # characters


@dataclass(frozen=True, slots=True)
class TopicEntry:
    """A record of memory, as an extractor sees it. Secrets have been removed from its texts."""

    memory_id: str
    memory_type: str
    subject: str
    content: str

    @property
    def text(self) -> str:
        """Everything that can support a topic."""
        return f"{self.subject}\n{self.content}"


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic as an extractor names it, with the entries that it cites; None: it cites none."""

    text: str
    entries: Sequence[str] | None  # memory ids


class Extractor(Protocol):
    """Returns the topics that entries are about, the most significant first.

    Raises HansardError where it cannot: nothing is written then.
    """

    @property
    def name(self) -> str:
        """Its name and version, stored with each interest."""

    def __call__(
        self, entries: Sequence[TopicEntry], /, *, limit: int = MOST_TOPICS
    ) -> list[Topic]: ...


# Roots of words, cut further than search cuts them: detection, detector and detect are one.
#
# Names are taken whole, unlike in a search: SQLite is one word, and not three.


_ENDINGS: Final = ("ion", "or", "iv", "at")
_SHORTEST: Final = 5  # letters that stay


@lru_cache(maxsize=65_536)
def root(word: str) -> str:
    """Cut what makes a noun of a verb: `detector` is `detect`, and `retri`(ed) is `retry`."""
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _SHORTEST:
            return word[: -len(ending)]
    return f"{word[:-1]}y" if word.endswith("i") and len(word) > _SHORTEST - 1 else word


def roots(text: str) -> list[str]:
    """Return the roots of a text's words, in order, without stop words."""
    return [one for word in WORD.findall(text) for one in _roots_of(word)]


@lru_cache(maxsize=65_536)
def _roots_of(word: str) -> tuple[str, ...]:
    return tuple(map(root, stems_of(word)))


def stems_of(word: str) -> Sequence[str]:
    """Return the stems of a word; a name is one word, without its parts."""
    found = terms_of(word)
    return (stem(found[-1]),) if len(found) > 1 and not is_dense(found[0]) else found


def within(entries: Sequence[TopicEntry], most: int) -> Sequence[TopicEntry]:
    """Return the first entries, the newest, that have so many characters together."""
    sizes = accumulate(len(one.text) for one in entries)
    return entries[: bisect_right(list(sizes), most)]
