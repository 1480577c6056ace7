"""The documents, as a search would find them: each with its date, and how far to trust it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "documents"


@dataclass(frozen=True)
class Document:
    """A source: `name` is what answers cite."""

    name: str
    title: str
    published: str  # a date
    trust: float  # 0 to 1
    tags: list[str]
    text: str
    fact: dict[
        str, str
    ]  # what it states: subject, attribute and value; empty where nothing is told

    def candidate(self) -> dict[str, Any]:
        """The document as it could go into a prompt, with where it is from and from when."""
        return {
            "id": self.name,
            "kind": "retrieval_doc",
            "content": self.text,
            "source_ref": {"source_type": "retrieval", "uri": self.name, "title": self.name},
            "created_at": f"{self.published}T00:00:00Z",
            "trust_score": self.trust,
            "tags": self.tags,
            "metadata": {"title": self.title, **self.fact},
        }


def read(path: Path) -> Document:
    """Read a document: lines of what is known about it, an empty line, its text."""
    head, _, text = path.read_text(encoding="utf-8").partition("\n\n")
    told = dict(line.split(": ", 1) for line in head.splitlines())
    return Document(
        path.stem,
        told["title"],
        told["published"],
        float(told["trust"]),
        told.get("tags", "").split(),
        text.strip(),
        {name: told[name] for name in ("subject", "attribute", "value") if name in told},
    )


def find(query: str) -> list[Document]:
    """Return the documents that have a word of the query in them, by name."""
    wanted = set(_words(query))
    found = [read(path) for path in sorted(FOLDER.glob("*.md"))]
    return [one for one in found if wanted & set(_words(one.text))]


def _words(text: str) -> list[str]:
    return re.findall(r"\w{4,}", text.lower())
