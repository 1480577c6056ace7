"""What a line of a terminal or a log may hold."""

from __future__ import annotations


def printable(recorded: str) -> str:
    """Return a text in one line, with what cannot be printed as Python would write it.

    Control characters could drive a terminal, and line breaks forge a line of the output.
    """
    if recorded.isprintable():
        return recorded
    return "".join(
        one if one.isprintable() else one.encode("unicode_escape").decode("ascii")
        for one in recorded
    )
