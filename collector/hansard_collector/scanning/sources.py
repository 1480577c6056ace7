"""Where stories come from: what a source can do, and the table of those there are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, Protocol

from hansard_collector.scanning.hackernews import HackerNews
from hansard_store.stories.rows import Story


class StorySource(Protocol):
    """A place that ranks stories. Both calls raise SourceDown or BadAnswer."""

    @property
    def name(self) -> str:
        """What its stories are filed under."""

    def top(self, limit: int) -> Sequence[str]:
        """Return ids of the top stories, the first first, each once."""

    def story(self, story_id: str) -> Story:
        """Fetch one story."""


# Each is made with its address, None for its own.
SOURCES: Final[Mapping[str, Callable[[str | None], StorySource]]] = MappingProxyType(
    {"hackernews": HackerNews}
)
