"""Which packages watch the official clients of models, and what makes them send messages.

One table, `instrumentor_packages.toml`: the empty page, the page of a run without messages,
`hansard.instrument()` and the documents take their lines from there. `make test-peers` runs them
with pinned packages, `make test-newest` with those of the day.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final


@dataclass(frozen=True, slots=True)
class Instrumentor:
    """A package that works with the client of one library."""

    library: str
    language: str  # as `telemetry.sdk.language` says it
    package: str
    page: str  # of docs/connect


@dataclass(frozen=True, slots=True)
class Setup:
    """What a shell needs so that a program is recorded with nothing changed in it."""

    language: str
    install: Sequence[str]  # a command, and what it installs
    run: Sequence[str]  # a command with its options, and the program
    content: str = ""  # NAME=value without which no messages are sent; "" where none is needed
    file: str = ""  # the name of a file that `run` reads, and
    text: str = ""  # what it holds

    @property
    def lines(self) -> tuple[str, ...]:
        """The lines, as a shell takes them."""
        switch = (f"export {self.content}",) if self.content else ()
        return " ".join(self.install), *switch, " ".join(self.run)


@dataclass(frozen=True, slots=True)
class ContentSwitch:
    """How a sender is made to send messages; by what it calls its instrumentation scope."""

    sender: str
    scopes: Sequence[str]  # prefixes
    lines: str  # for the shell that the program is started from


_DATA: Final = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
INSTRUMENTORS: Final = tuple(Instrumentor(**row) for row in _DATA["instrumentors"])
PYTHON, NODE = (Setup(**row) for row in _DATA["setups"])
_CONTENT_SWITCHES: Final = tuple(ContentSwitch(**row) for row in _DATA["content_switches"])


def package_for(library: str, language: str = "python") -> str | None:
    """Return the package that works with a library's client; None for one that is not listed."""
    for one in INSTRUMENTORS:
        if (one.library, one.language) == (library, language):
            return one.package
    return None


def content_switch(scopes: Iterable[str]) -> ContentSwitch | None:
    """Return how the first sender that is known by its scope is made to send messages."""
    for scope in scopes:
        for switch in _CONTENT_SWITCHES:
            if scope.startswith(tuple(switch.scopes)):
                return switch
    return None
