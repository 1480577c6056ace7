"""`hansard demo`: a server, a coding agent at work, and every question it can be asked."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import socket
import sys
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hansard_compiler.errors import HansardError
from hansard_web.app.config import Config, load_config
from hansard_web.cli.base import Command, setting_options
from hansard_web.demo.coding.settings import PROVIDERS, SCRIPTED, DemoSettings, model_of
from hansard_web.ui.format import plural

if TYPE_CHECKING:
    from hansard_web.app.server_file import Endpoints
    from hansard_web.demo.story import Seen


class DemoFolderUsed(HansardError):
    """The folder holds a demo already; its story begins with an empty memory."""

    code = "demo_folder_used"

    def __init__(self, folder: Path) -> None:
        super().__init__(
            f"{folder} holds a demo already: look at it with `hansard serve --data "
            f"{shlex.quote(str(folder))}`, or name a folder that holds none"
        )


_PACE_S = 0.8  # between two steps: a person follows in the browser


@click.command(cls=Command)
@setting_options("data", "http_port", "grpc_port", "model_server")
@click.option("--exit", "exits", is_flag=True, help="End with 0 if everything was read back.")
@click.option("--fast", is_flag=True, help="Do not pause for people to follow.")
@click.option("--ask", "asks", is_flag=True, help="Leave the decisions to you, in the browser.")
@click.option(
    "--provider",
    type=click.Choice(PROVIDERS),
    default=SCRIPTED,
    show_default=True,
    help="The coding agent asks a real model: with a key of yours, or at --model-server.",
)
@click.option("--model", help="Model of that provider.")
def demo(
    *,
    exits: bool,
    fast: bool,
    asks: bool,
    provider: str,
    model: str | None,
    model_server: str | None,
    data: str | None,
    http_port: str | None,
    grpc_port: str | None,
) -> None:
    """Watch a coding agent fix a failing test, with everything it knew on record.

    A person sends its first patch back, the second one runs; the step that went wrong is replayed,
    exactly and with more room; a second run remembers. Beside it four small agents export with the
    stock OpenTelemetry SDK. Then an agent claims a success that the record does not show, and the
    heartbeat corrects it. Scripted local models answer: no key, no network.

    Without --data the store is deleted when the demo ends; with it, the folder takes one demo.
    Without ports it takes 4318 and 4317, or free ones if they are taken.

    Example: hansard demo --exit --fast
    """
    from hansard_web.demo.coding.coder import SCRIPT
    from hansard_web.demo.coding.workspace import need_pytest

    need_pytest()
    chosen_model = model_of(provider, model, model_server=model_server, environment=os.environ)
    arguments = {
        "model_server": model_server,
        "http_port": http_port or str(_free_port(4318)),
        "grpc_port": grpc_port or str(_free_port(4317)),
    }
    pace_s = 0.0 if fast else _PACE_S
    with _folder(data) as (folder, is_temporary):
        # The environment has no say: a token or retention set for real use would spoil the show.
        config = load_config({**arguments, "data": str(folder), "script": str(SCRIPT)}, {})
        repositories = folder / "repositories"
        if repositories.exists():
            raise DemoFolderUsed(folder)
        golden = DemoSettings(
            repositories, provider, chosen_model, config.model_server, pace_s, asks
        )
        _play(config, golden, is_temporary=is_temporary, exits=exits)


def _play(config: Config, golden: DemoSettings, *, is_temporary: bool, exits: bool) -> None:
    from hansard_web.app.server import running
    from hansard_web.demo.claims.chapter import play_claims
    from hansard_web.demo.coding.golden import play
    from hansard_web.demo.coding.reviewer import person_at
    from hansard_web.demo.coding.summary import summary, summary_of_claims
    from hansard_web.demo.story import check, run_programs

    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    with running(config) as server, ThreadPoolExecutor(1) as beside:
        endpoints = server.endpoints
        rosa = person_at(endpoints)
        _introduce(endpoints, rosa.link, is_temporary=is_temporary)
        others = beside.submit(run_programs, endpoints)
        found = play(endpoints, golden, click.echo, token=rosa.token)
        runs = others.result()
        claimed = play_claims(config, endpoints, click.echo)
        check(endpoints, runs)
        agents = plural(len({seen.report.agent for seen in runs}), "agent")
        click.echo(f"\nBeside it, {plural(len(runs), 'run')} of {agents} with the stock SDK:")
        for seen in runs:
            _tell(endpoints, seen)
        click.echo(
            f"\n{len(runs)} runs read back through the API: names, statuses, calls and tokens are "
            "what the programs counted.\n"
        )
        click.echo(summary(endpoints, found, is_scripted=golden.is_scripted))
        click.echo(summary_of_claims(endpoints, claimed))
        if exits:
            click.echo("\nThe server ends here, and its pages with it; without --exit they stay.")
            return
        click.echo("\nThe same in another terminal:")
        click.echo(f"  export HANSARD_DATA={shlex.quote(str(endpoints.data.absolute()))}")
        click.echo(f"  {shlex.quote(sys.argv[0])} runs list")
        click.echo(f"\nOpen {rosa.link}  signed in as rosa (Ctrl+C ends the demo)")
        stop.wait()


def _introduce(endpoints: Endpoints, link: str, *, is_temporary: bool) -> None:
    fate = "  (deleted when the demo ends)" if is_temporary else ""
    click.echo("A coding agent, a failing test, and a person who decides.\n")
    click.echo(f"  Browser    {endpoints.http}/")
    click.echo(f"  Sign in    {link}  as rosa, who decides")
    click.echo(f"  OTLP/gRPC  {endpoints.grpc}")
    click.echo(f"  OTLP/HTTP  {endpoints.http}")
    click.echo(f"  Data       {endpoints.data}{fate}\n")


def _tell(endpoints: Endpoints, seen: Seen) -> None:
    report = seen.report
    tokens = report.tokens["input"] + report.tokens["output"]
    calls = plural(report.model_calls, "model call")
    tools = plural(report.tool_calls, "tool call")
    click.echo(
        f"  {report.agent:<19} {seen.protocol:<14} {report.status:<6} {calls:<14} {tools:<13}"
        f"{tokens:>6,} tokens  {endpoints.http}/runs/{report.run_id}"
    )


def _free_port(preferred: int) -> int:
    """Return the port if it is free, else 0: a demo beside a running server takes another."""
    try:
        socket.create_server(("127.0.0.1", preferred)).close()
    except OSError:
        return 0
    return preferred


@contextmanager
def _folder(named: str | None) -> Iterator[tuple[Path, bool]]:
    if named is not None:
        yield Path(named), False
        return
    folder = Path(tempfile.mkdtemp(prefix="hansard-demo-"))
    try:
        yield folder, True
    finally:
        _forget_heads(folder)
        shutil.rmtree(folder)


def _forget_heads(folder: Path) -> None:
    """Delete the second copy of the heads of a store that is deleted: it is kept outside of it."""
    from hansard_store.audit.anchors import copy_folder, store_id
    from hansard_store.database.data_folder import DataFolder

    copies = copy_folder()
    with suppress(HansardError, OSError):  # a demo that ended before it had a store
        if copies is not None and (folder / "key").exists():
            (copies / store_id(DataFolder(folder).key())).unlink(missing_ok=True)
