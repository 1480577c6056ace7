"""A report as the page shows it: its Markdown with links to what it names."""

from __future__ import annotations

import re
from typing import Final

# Code spans come first: recorded words stand in them, and nothing in them becomes a link but the
# command that shows a task.
_LINKED: Final = re.compile(
    r"(?P<task>`hansard tasks show (?P<task_id>[0-9a-f]{8})`)"
    r"|(?P<code>`[^`\n]*`)"
    r"|\bstep (?P<step>[0-9a-f]{8}-[0-9a-f]{8})\b"
    r"|\brun (?P<run>[0-9a-f]{8})\b"
    r"|\bmemory (?P<memory>[0-9a-f]{8})\b"
)
_PATHS: Final = {"step": "/steps/", "run": "/runs/", "memory": "/memory/"}


def with_links(text: str) -> str:
    """Return a report without its own title, with links to steps, runs, memories and tasks."""
    lines = text.splitlines()
    body = lines[1:] if lines and lines[0].startswith("# ") else lines
    return _LINKED.sub(_link, "\n".join(body).strip())


def _link(found: re.Match[str]) -> str:
    if found["task"]:
        return f"[review {found['task_id']}](/tasks/{found['task_id']})"
    for kind, path in _PATHS.items():
        if found[kind]:
            return f"[{kind} {found[kind][:8]}]({path}{found[kind]})"
    return found[0]
