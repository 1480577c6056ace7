"""`hansard demo`: a server, three small agents, and their runs in the browser."""

from __future__ import annotations

import shutil
import signal
import socket
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hansard_web.cli.base import Command, setting_options
from hansard_web.config import Config, load_config
from hansard_web.format import plural

if TYPE_CHECKING:
    from hansard_web.demo.story import Seen
    from hansard_web.presence import Doors


@click.command(cls=Command)
@setting_options("data", "http_port", "grpc_port")
@click.option("--exit", "exits", is_flag=True, help="End with 0 if the runs were read back.")
def demo(*, exits: bool, data: str | None, http_port: str | None, grpc_port: str | None) -> None:
    """Run three small agents against a fresh server.

    A scripted local model answers them: no key, no network. Without --data the store is deleted
    when the demo ends; without ports it takes 4318 and 4317, or free ones if they are taken.

    Example: hansard demo --exit
    """
    arguments = {
        "http_port": http_port or str(_free_port(4318)),
        "grpc_port": grpc_port or str(_free_port(4317)),
    }
    with _folder(data) as (folder, is_temporary):
        # The environment has no say: a token or retention set for real use would spoil the show.
        config = load_config({**arguments, "data": str(folder)}, {})
        _play(config, is_temporary=is_temporary, exits=exits)


def _play(config: Config, *, is_temporary: bool, exits: bool) -> None:
    from hansard_web.demo.story import check, run_programs
    from hansard_web.server import running

    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    with running(config) as server:
        doors = server.doors
        _introduce(doors, is_temporary=is_temporary)
        runs = run_programs(doors, on_run=lambda seen: _tell(doors, seen))
        check(doors, runs)
        click.echo(
            f"\n{len(runs)} runs read back through the API: names, statuses, calls and tokens are "
            "what the programs counted."
        )
        if exits:
            return
        click.echo(f"Open {doors.http}/  (Ctrl+C ends the demo)")
        stop.wait()


def _introduce(doors: Doors, *, is_temporary: bool) -> None:
    fate = "  (deleted when the demo ends)" if is_temporary else ""
    click.echo("Three small agents, a scripted local model, the stock OpenTelemetry SDK.\n")
    click.echo(f"  Browser    {doors.http}/")
    click.echo(f"  OTLP/gRPC  {doors.grpc}")
    click.echo(f"  OTLP/HTTP  {doors.http}")
    click.echo(f"  Data       {doors.data}{fate}\n")


def _tell(doors: Doors, seen: Seen) -> None:
    report = seen.report
    tokens = report.tokens["input"] + report.tokens["output"]
    calls = plural(report.model_calls, "model call")
    tools = plural(report.tool_calls, "tool call")
    click.echo(
        f"  {report.agent:<19} {seen.protocol:<14} {report.status:<6} {calls:<14} {tools:<13}"
        f"{tokens:>6,} tokens  {doors.http}/runs/{report.run_id}"
    )


def _free_port(wanted: int) -> int:
    """Return the port if it is free, else 0: a demo beside a running server takes another."""
    try:
        socket.create_server(("127.0.0.1", wanted)).close()
    except OSError:
        return 0
    return wanted


@contextmanager
def _folder(named: str | None) -> Iterator[tuple[Path, bool]]:
    if named is not None:
        yield Path(named), False
        return
    folder = Path(tempfile.mkdtemp(prefix="hansard-demo-"))
    try:
        yield folder, True
    finally:
        shutil.rmtree(folder)
