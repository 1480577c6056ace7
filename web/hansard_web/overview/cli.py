"""`hansard overview` and `hansard latency`: figures over time, and what is compared by them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from hansard_store.figures.histograms import Histogram
from hansard_store.figures.records import DIMENSIONS, STEPS, FigureReport, Figures
from hansard_web.api.queries import run_filter_of
from hansard_web.cli.base import Command, json_option, print_json, setting_options
from hansard_web.cli.store import reading
from hansard_web.cli.tables import Column, print_table
from hansard_web.overview.api import read_report
from hansard_web.overview.bodies import figure_answer
from hansard_web.runs.cli import cost_text
from hansard_web.ui import format as fmt

_MOST = 500


def _asking(function: Any) -> Any:
    """Add what both commands take."""
    for add in (
        json_option,
        click.option("--merge-models", is_flag=True,
                     help="Count dated versions of a model as one."),
        click.option("--agent", multiple=True, help="Only runs of this agent."),
        click.option("--model", multiple=True, help="Only runs with this model."),
        click.option("--until", help="Runs started before."),
        click.option("--since", help="Started at or after: 2026-01-31, 24h. Default: 30 days."),
        setting_options("data"),
    ):  # fmt: skip
        function = add(function)
    return function


@click.command(cls=Command)
@click.option("--by", type=click.Choice(DIMENSIONS), help="Also by the values of this.")
@click.option("--step", type=click.Choice(STEPS), help="hour up to 7 days, else day.")
@_asking
def overview(*, by: Any, step: Any, data: str | None, as_json: bool, **asked: Any) -> None:
    """Sum runs, calls, cost, errors and latency over time.

    Steps are of UTC; a run counts in the one in which it started.

    Example: hansard overview --since 7d --by model --json
    """
    report = _read(data, asked, by=by, step=step)
    if as_json:
        print_json(figure_answer(report, limit=_MOST))
        return
    rows = [(fmt.day_time(at), one) for at, one in report.total.points.items()]
    _print("START (UTC)", [*rows, ("all", report.total.total)])
    if by:
        _print(by.upper(), [(one.key or "(none)", one.total) for one in report.series])


@click.command(cls=Command)
@click.option("--by", type=click.Choice(DIMENSIONS), default="model", show_default=True,
              help="What is compared.")  # fmt: skip
@_asking
def latency(*, by: Any, data: str | None, as_json: bool, **asked: Any) -> None:
    """Compare the latency, errors and cost of models, tools or agents.

    Example: hansard latency --by tool --since 24h
    """
    report = _read(data, asked, by=by)
    if as_json:
        print_json(figure_answer(report, limit=_MOST, with_points=False))
        return
    _print(by.upper(), [(one.key or "(none)", one.total) for one in report.series], by=by)


def _read(data: str | None, asked: dict[str, Any], *, by: Any, step: Any = None) -> FigureReport:
    merge_models = asked.pop("merge_models")
    filters = run_filter_of(asked)
    with reading(data) as connection:
        return read_report(connection, filters, by=by, step=step, merge_models=merge_models)


def _print(name: str, rows: Sequence[tuple[str, Figures]], *, by: str = "") -> None:
    figures = ("RUNS", "FAILED", "CALLS", "TOOLS", "IN", "OUT", "COST", "P50", "P95", "P99")
    print_table(
        (Column(name, may_cut=True), *(Column(one, is_figure=True) for one in figures)),
        (
            (
                label,
                fmt.count(one.runs),
                fmt.count(one.failed_runs),
                fmt.count(one.model_calls),
                fmt.count(one.tool_calls),
                "–" if one.tokens is None else fmt.count(one.tokens.input or 0),
                "–" if one.tokens is None else fmt.count(one.tokens.output or 0),
                cost_text(one.cost_usd_nano),
                *(_duration(_latency(one, by), share) for share in (0.5, 0.95, 0.99)),
            )
            for label, one in rows
        ),
    )


def _latency(one: Figures, by: str) -> Histogram:
    if by == "tool":
        return one.tool_latency
    return one.call_latency if by == "model" else one.run_latency


def _duration(latency: Histogram, share: float) -> str:
    found = latency.percentile_ns(share)
    return "–" if found is None else fmt.duration(int(found))
