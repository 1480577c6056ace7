"""The columns of the runs list: what each is called, and what orders by it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class RunColumn:
    """A column beside status and name, which every list has."""

    key: str  # in addresses and saved views
    label: str
    sort: str  # the order that the first click on its head chooses; "" for none
    is_figure: bool = True
    title: str = ""


# Of every list, before the others.
STATUS: Final = RunColumn("status", "Status", "status", is_figure=False)
NAME: Final = RunColumn("name", "Run", "name", is_figure=False)


def _all(*columns: RunColumn) -> dict[str, RunColumn]:
    return {column.key: column for column in columns}


COLUMNS: Final = _all(
    RunColumn("agent", "Agent, model", "agent", is_figure=False),
    RunColumn("model", "Model", "model", is_figure=False),
    RunColumn("service", "Service", "service", is_figure=False),
    RunColumn("user", "User", "user", is_figure=False),
    RunColumn("tags", "Tags, scores", "", is_figure=False),
    RunColumn("steps", "Steps", "-steps"),
    RunColumn("calls", "Calls", "-calls", title="model calls"),
    RunColumn("tools", "Tools", "-tools", title="tool calls, rejected ones among them"),
    RunColumn("errors", "Errors", "-errors", title="steps that failed"),
    RunColumn("tokens", "Tokens", "-tokens", title="input and output"),
    RunColumn("input", "Input", "-input", title="input tokens"),
    RunColumn("cached", "Cached", "-cached", title="share of the input read from the prompt cache"),
    RunColumn("output", "Output", "-output", title="output tokens"),
    RunColumn("cost", "Cost", "-cost_usd"),
    RunColumn(
        "duration", "Duration", "-duration_ms", is_figure=False,
        title="the bar's scale is logarithmic: empty is 0.1 s, full is an hour",
    ),
    RunColumn("started", "Started", "-started_at"),
    RunColumn("seen", "Last seen", "-last_seen", title="when a span of it last arrived"),
)  # fmt: skip
USUAL: Final = ("agent", "tokens", "cost", "duration", "started")


def read_columns(text: str) -> tuple[str, ...]:
    """Return the columns that a text names, in the order in which a list shows them.

    The usual ones are `()`, and so is a text that names none.
    """
    return ordered(text.split(","))


def ordered(wanted: Iterable[str]) -> tuple[str, ...]:
    """Return the known ones of some columns in the order of the list; `()` for the usual ones."""
    names = set(wanted)
    found = tuple(key for key in COLUMNS if key in names)
    return () if found == USUAL else found


def unknown_columns(text: str) -> list[str]:
    """Return the names in a text that are no column."""
    return [name for name in text.split(",") if name and name not in COLUMNS]
