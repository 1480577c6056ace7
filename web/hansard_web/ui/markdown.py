"""Recorded messages word for word, or their markdown as safe HTML. Recorded text is hostile.

Parser and sanitiser come with the first message: 3 MB that a server which only receives is spared.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from markupsafe import Markup, escape

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_core import StateCore

_TAGS = {
    "p", "br", "hr", "em", "strong", "s", "code", "pre", "blockquote", "a",
    "ul", "ol", "li", "h1", "h2", "h3", "h4", "h5", "h6",
    "table", "thead", "tbody", "tr", "th", "td",
}  # fmt: skip
_SAFE_SCHEMES = {"http", "https", "mailto"}
_LONGEST = 200_000  # characters; beyond this a message is shown as plain text


def to_html(text: str) -> Markup | None:
    """Return markdown as HTML that may stand in a page; None when it is too long to try.

    Two walls: the parser never passes HTML through, and the sanitiser keeps an allow-list only.
    Links open nothing by themselves and tell their target nothing.
    """
    if len(text) > _LONGEST:
        return None
    import nh3

    # style="text-align" of table cells goes too: the CSP would block it with a console error.
    clean = nh3.clean(
        _parser().render(text),
        tags=_TAGS,
        attributes={"a": {"href"}, "ol": {"start"}},
        url_schemes=_SAFE_SCHEMES,
        link_rel="noopener noreferrer nofollow",
    )
    return Markup(clean)


def verbatim(text: str) -> Markup:
    """Return a text for the inside of a `<pre>` so that a browser has exactly its characters.

    HTML drops a first line break of a `<pre>` and reads carriage returns as line breaks: one is
    put in front, the others are written as references.
    """
    return Markup("\n") + Markup(str(escape(text)).replace("\r", "&#13;"))


@cache
def _parser() -> MarkdownIt:
    """Return the parser; safe to share, as it keeps nothing of what it parses."""
    from markdown_it import MarkdownIt

    # No raw HTML and no images: an image in a prompt is a known way to leak what is on the page.
    parser = MarkdownIt("commonmark", {"html": False, "linkify": False})
    parser.core.ruler.push("below the page's headings", _lower_headings)
    return parser.enable("table").disable("image")


def _lower_headings(state: StateCore) -> None:
    """Put a message's headings below the page's one `h1`, and none more than a level deeper
    than the one before it, as readers of a page by its headings expect.
    """
    level = 1
    for token in state.tokens:
        if token.type == "heading_open":
            level = min(int(token.tag[1:]) + 1, level + 1, 6)
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{level}"
