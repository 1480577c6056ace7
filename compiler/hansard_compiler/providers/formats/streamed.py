"""What the events of a stream add up to."""

from __future__ import annotations

from dataclasses import dataclass

from hansard_compiler.calls import Json
from hansard_compiler.providers.formats.json_access import Body


@dataclass(frozen=True, slots=True)
class Streamed:
    """An answer put together, in the form of one that was not streamed."""

    body: Json  # what had come of it, where the end is missing
    is_finished: bool  # the provider said that nothing more comes
    error: Body | None = None  # what an event told of a failure

    @property
    def whole(self) -> Json | None:
        """The answer; None where its end is missing or an event told of an error."""
        return self.body if self.is_finished and self.error is None else None
