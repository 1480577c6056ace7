"""Reading pages in tests: elements by tag, class, attribute and text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser

_VOID = frozenset(
    ["area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "wbr"]
)


@dataclass
class Element:
    """An element of a parsed page."""

    tag: str
    attributes: dict[str, str]
    children: list[Element | str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """All text below, white space folded, without what only screen readers hear."""
        return " ".join("".join(self._texts()).split())

    def _texts(self) -> Iterator[str]:
        for child in self.children:
            if isinstance(child, str):
                yield child
            elif "sr" not in child.classes and child.tag not in ("script", "style"):
                yield from child._texts()

    @property
    def classes(self) -> list[str]:
        return self.attributes.get("class", "").split()

    def walk(self) -> Iterator[Element]:
        """Yield every element below, in the order of the page."""
        waiting: list[Element | str] = self.children[::-1]
        while waiting:
            child = waiting.pop()
            if isinstance(child, Element):
                yield child
                waiting += reversed(child.children)

    def all(self, tag: str = "", *, class_: str = "", **attributes: str) -> list[Element]:
        """Return the elements below that fit; `data_x` names the attribute `data-x`."""
        wanted = {name.rstrip("_").replace("_", "-"): value for name, value in attributes.items()}
        return [
            element
            for element in self.walk()
            if (not tag or element.tag == tag)
            and (not class_ or class_ in element.classes)
            and all(element.attributes.get(name) == value for name, value in wanted.items())
        ]

    def one(self, tag: str = "", *, class_: str = "", **attributes: str) -> Element:
        found = self.all(tag, class_=class_, **attributes)
        assert len(found) == 1, f"{len(found)} elements fit {tag} {class_} {attributes}"
        return found[0]

    def __getitem__(self, name: str) -> str:
        return self.attributes[name]


class _Builder(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Element("", {})
        self._open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, {name: value or "" for name, value in attrs})
        self._open[-1].children.append(element)
        if tag not in _VOID:
            self._open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._open[-1].children.append(Element(tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        assert self._open[-1].tag == tag, f"</{tag}> closes <{self._open[-1].tag}>"
        self._open.pop()

    def handle_data(self, data: str) -> None:
        self._open[-1].children.append(data)


def parse(html: str) -> Element:
    """Return the page; fails on tags that are not closed in order."""
    builder = _Builder()
    builder.feed(html)
    builder.close()
    assert len(builder._open) == 1, f"<{builder._open[-1].tag}> is never closed"
    return builder.root
