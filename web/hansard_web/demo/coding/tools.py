"""What the coding agent can do: read, run a command, patch a file. The gate stands before each."""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import hansard
from hansard import memory
from hansard_web.demo.coding.workspace import NoSuchText, Workspace

PROJECT: Final = "shop"
TESTS: Final = "python -m pytest"
_STRING: Final = {"type": "string"}


def _describe(path: str, old: str, new: str) -> str:
    return f"In {path}, replace {old} by {new}"


@dataclass(slots=True)
class Permit:
    """The approval under which a call runs at the moment: memory asks for it."""

    approval_id: str | None = None


def make_tools(workspace: Workspace, permit: Permit) -> list[Callable[..., str]]:
    """Return the tools of one workspace."""

    @hansard.tool(effect="read", tool_class="files")
    def read_file(path: str) -> str:
        """Read a file of the repository."""
        return workspace.read(path)

    @hansard.tool(effect="read", tool_class="shell")
    def run_shell(command: str) -> str:
        """Run a command in the repository."""
        if shlex.split(command) == shlex.split(TESTS):
            return workspace.run_tests()
        raise PermissionError(f"this agent runs {TESTS!r} and nothing else")

    @hansard.tool(effect="write", tool_class="files", describe=_describe, wait_s=math.inf)
    def apply_patch(path: str, old: str, new: str) -> str:
        """Put new text in place of old text that stands in a file once."""
        try:
            workspace.replace(path, old, new)
        except NoSuchText as error:
            return f"nothing changed: {error}"
        return f"patched {path}"

    @hansard.tool(effect="write", tool_class="memory", describe="Remember: {content}")
    def remember(content: str) -> str:
        """Keep a convention of this repository for later tasks."""
        memory.write(
            content,
            writer="human_approved_summary",
            approval_id=permit.approval_id,
            type="constraint",
            subject="rounding",
            project=PROJECT,
            confidence=0.95,
        )
        return "remembered"

    return [read_file, run_shell, apply_patch, remember]


# As models see them.
DEFINITIONS: Final[Sequence[dict[str, Any]]] = tuple(
    {
        "name": name,
        "description": description,
        "parameters": {
            "type": "object",
            "properties": dict.fromkeys(parameters, _STRING),
            "required": list(parameters),
        },
    }
    for name, description, parameters in (
        ("read_file", "Read a file of the repository.", ("path",)),
        ("run_shell", f"Run a command in the repository: {TESTS}.", ("command",)),
        (
            "apply_patch",
            "Put new text in place of old text that stands in a file once.",
            ("path", "old", "new"),
        ),
        ("remember", "Keep a convention of this repository for later tasks.", ("content",)),
    )
)

# What the request forbids is a rule, not a hope; and of commands only the tests run unasked.
RULES: Final[Sequence[dict[str, Any]]] = json.loads(
    Path(__file__).with_name("rules.json").read_text(encoding="utf-8")
)
