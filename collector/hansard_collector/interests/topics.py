"""What extractors of topics get and return."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

MOST_TOPICS: Final = 5  # of one extraction
LONGEST_TOPIC: Final = 120  # characters


@dataclass(frozen=True, slots=True)
class Entry:
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

    def __call__(self, entries: Sequence[Entry], /, *, limit: int = MOST_TOPICS) -> list[Topic]: ...
