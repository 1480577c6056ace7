"""`hansard doctor`: is everything as it should be, and can the server be reached?"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from itertools import chain

import click
from rich.text import Text

from hansard_compiler.errors import NotFoundError
from hansard_store.database.data_folder import DataFolder
from hansard_store.database.readers import open_reader
from hansard_store.principals.model import Scope
from hansard_store.runs.queries import get_run
from hansard_web.app.config import Config
from hansard_web.app.server_file import Endpoints, find_server
from hansard_web.cli.base import (
    Command,
    Failed,
    json_option,
    print_json,
    read_config,
    setting_options,
)
from hansard_web.cli.tables import plain, print_lines
from hansard_web.health.checks import HealthFinding, Level, check_offline, examine, fail, ok

_STYLES = {Level.OK: "green", Level.WARN: "yellow", Level.FAIL: "bold red"}


@click.command(cls=Command)
@setting_options("data", "config", "host", "http_port", "grpc_port", "token", "heads_copy")
@click.option(
    "--send-test-span", is_flag=True, help="Send a span to each endpoint and read it back."
)
@click.option("--offline", is_flag=True, help="Prove that nothing leaves this machine.")
@json_option
def doctor(*, send_test_span: bool, offline: bool, as_json: bool, **arguments: str) -> None:
    """Check ports, disk, permissions, versions, the server and the SDK's settings.

    Ends with 1 when something is wrong that keeps Hansard from working.

    Example: hansard doctor --send-test-span
    """
    config = read_config(**arguments)
    findings = []
    settings = {name: arguments.get(name) for name in ("data", "config")}
    examined = [examine(config, settings)]
    if send_test_span:
        examined.append(_send_test_spans(config))
    if offline:
        examined.append(check_offline())
    for finding in chain.from_iterable(examined):
        findings.append(finding)
        if not as_json:
            _print(finding)
    if as_json:
        print_json([{"level": f.level, "check": f.what, "text": f.text} for f in findings])
    wrong = sum(finding.level is Level.FAIL for finding in findings)
    if wrong:
        raise Failed(f"{wrong} of {len(findings)} checks failed")


def _print(finding: HealthFinding) -> None:
    level = Text(f"{finding.level:<5}", style=_STYLES[finding.level])
    print_lines([level.append_text(plain(f"{finding.what:<12} {finding.text}"))])


# ---- a span to each endpoint


def _send_test_spans(config: Config) -> Iterator[HealthFinding]:
    endpoints = find_server(config.data)
    if endpoints is None:
        yield fail("test span", f"no server is running on {config.data}: `hansard serve`")
        return
    for protocol in ("http/protobuf", "grpc"):
        if protocol == "http/protobuf" or endpoints.grpc is not None:
            yield _send_test_span(config, endpoints, protocol)


def _send_test_span(config: Config, endpoints: Endpoints, protocol: str) -> HealthFinding:
    what = f"test {protocol.partition('/')[0]}"
    # Imported here: the exporters take longer than all other checks together.
    from hansard_web.health.test_span import send_test_span

    token = next((t.secret for t in config.token if t.allows(Scope.INGEST)), None)
    trace_id = send_test_span(endpoints, protocol=protocol, token=token)
    if trace_id is None:
        return fail(what, "the span was not accepted; is HANSARD_TOKEN needed?")
    with closing(open_reader(DataFolder(endpoints.data))) as connection:
        try:
            run = get_run(connection, trace_id, now_ns=time.time_ns())
        except NotFoundError:
            return fail(what, f"the span was accepted but is not in {endpoints.data}")
    return ok(what, f"sent, stored and read back: {endpoints.http}/runs/{run.run_id}")
