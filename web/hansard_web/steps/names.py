"""What a step is called on pages: its span name without the words that its icon says already."""

from __future__ import annotations

from typing import Final, Protocol

# By role: operations of the conventions that begin a span name and say only what the role says.
_SAID_BY_ROLE: Final = {
    "tool": ("execute_tool ",),
    "mcp": ("execute_tool ", "tools/call "),
    "agent": ("invoke_agent ", "create_agent "),
    "llm": ("chat ", "generate_content ", "text_completion "),
    "workflow": ("invoke_workflow ",),
}
_OWN_NAMES: Final = {"hansard.compile": "compile context", "hansard.policy.check": "policy check"}


class Named(Protocol):
    """What a step's title is made of."""

    @property
    def name(self) -> str: ...
    @property
    def role(self) -> str: ...


def step_title(step: Named) -> str:
    """Return a step's name for a row: `run_tests` of `execute_tool run_tests`."""
    return title_of(step.role, step.name)


def title_of(role: str, name: str) -> str:
    """Return the title of a step of that role and name; never empty where the name is not."""
    if name in _OWN_NAMES:
        return _OWN_NAMES[name]
    for operation in _SAID_BY_ROLE.get(role, ()):
        if name.startswith(operation):
            return name[len(operation) :].strip() or name
    return name
