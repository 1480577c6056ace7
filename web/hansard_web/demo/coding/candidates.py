"""Everything the coding agent could tell its model, as context items: the compiler chooses."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any, Final

from hansard_web.demo.coding.workspace import Workspace

REQUEST: Final = "Make the failing test pass. Do not edit tests. Preserve the public API."
CONSTRAINTS: Final = ("Do not edit tests.", "Preserve the public API.")
CONVENTIONS: Final = "CONVENTIONS.md"
_INSTRUCTIONS: Final = (
    "You are a careful programmer in a small repository. Read before you write, make the smallest "
    "change that does the job, and run the tests after every change."
)
# How far a file is to be trusted to say how things are, and how much it matters by itself.
_IMPORTANCE: Final = {"shop/invoice.py": 0.7, "shop/money.py": 0.3, "shop/tax.py": 0.3}
_USUAL: Final = 0.1


def instructions() -> dict[str, Any]:
    """Return what the agent is told about itself."""
    return _item("instructions", "system", _INSTRUCTIONS, source={"source_type": "app_state"})


def constraints() -> list[dict[str, Any]]:
    """Return the hard constraints that the request contains, one item each."""
    source = {"source_type": "user", "title": "the request"}
    return [
        _item(f"constraint-{number}", "constraint", text, source=source)
        for number, text in enumerate(CONSTRAINTS, 1)
    ]


def of_repository(workspace: Workspace) -> Iterator[dict[str, Any]]:
    """Return the repository's files: the README as its summary, everything else as it stands."""
    for path in workspace.paths():
        kind = "summary" if path == "README.md" else "file"
        item = _item(path, kind, workspace.read(path), source=_file(path))
        yield {**item, "importance_score": _IMPORTANCE.get(path, _USUAL)}
    diff = workspace.diff()
    if diff:
        source = {"source_type": "app_state", "title": "changes so far"}
        yield _item("diff", "code_diff", diff, source=source)


def _file(path: str) -> dict[str, Any]:
    return {"source_type": "file", "uri": path, "title": PurePosixPath(path).name}


def _item(name: str, kind: str, content: str, *, source: dict[str, Any]) -> dict[str, Any]:
    return {"id": name, "kind": kind, "content": content, "source_ref": source}
