"""`hansard serve`, and its two halves `collector` and `web`."""

from __future__ import annotations

import dataclasses
import json
import os
from typing import TYPE_CHECKING

import click

from hansard_web.app.config import JUDGE_SETTINGS
from hansard_web.cli.base import (
    Command,
    json_option,
    read_config,
    setting_options,
)
from hansard_web.ui.format import printable

if TYPE_CHECKING:
    from hansard_web.app.server import Half
    from hansard_web.app.server_file import Endpoints

_STORE = ("data", "config")
_HTTP = (
    "host",
    "http_port",
    "socket",
    "token",
    "tls_cert",
    "tls_key",
    "cors_origin",
    "allow_host",
)
_SHOWN = ("policy", "mcp", "heads_copy", "decide")
_INGEST = (
    "grpc_port", "retention", "durability", "keep", "max_disk", "heartbeat", "heartbeat_window",
    "scan_url", *JUDGE_SETTINGS,
    "stale_after", "evidence", "report_every", "report_webhook",
    "detect_threshold", "detect_window", "detect_min_cases",
)  # fmt: skip
# Written or sent by one half, shown by the other.
_BOTH = ("recipients", "report_escalation", "outbound", "notify", "public_url")


@click.command(cls=Command)
@setting_options(*_STORE, *_HTTP, *_INGEST, *_BOTH, *_SHOWN)
@json_option
def serve(*, as_json: bool, **arguments: str) -> None:
    """Receive telemetry and show it, in one process.

    OTLP/gRPC has a port of its own; OTLP/HTTP, the JSON API and the pages share one.

    Example: hansard serve --data ./traces --http-port 0
    """
    _run("serve", arguments, as_json=as_json)


@click.command(cls=Command)
@setting_options(*_STORE, *_HTTP, *_INGEST, *_BOTH)
@json_option
def collector(*, as_json: bool, **arguments: str) -> None:
    """Only receive telemetry.

    `hansard web` on the same data folder shows it.

    Example: hansard collector --data ./traces
    """
    _run("collector", arguments, as_json=as_json)


@click.command(cls=Command)
@setting_options(*_STORE, *_HTTP, *_BOTH, *_SHOWN)
@json_option
def web(*, as_json: bool, **arguments: str) -> None:
    """Only show what a collector stores.

    Both may run at once on one data folder, each in a process of its own.

    Example: hansard web --data ./traces --http-port 8080
    """
    _run("web", arguments, as_json=as_json)


def _run(half: str, arguments: dict[str, str], *, as_json: bool) -> None:
    config = read_config(**arguments)
    # The C library of gRPC logs what it also answers: our own line says it better.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    # Imported now: these bring FastAPI, gRPC and uvicorn, 0.8 s that --help does not need.
    from hansard_web.app.server import Half, Server

    which = Half(half)
    with Server(config, half=which) as server:
        server.run(on_ready=lambda endpoints: _announce(endpoints, half=which, as_json=as_json))


def _announce(endpoints: Endpoints, *, half: Half, as_json: bool) -> None:
    """Print the endpoints, one line each."""
    if as_json:
        found = {**dataclasses.asdict(endpoints), "link": f"{endpoints.http}{endpoints.link}"}
        if not endpoints.link:
            del found["link"]
        found.pop("settings", None)  # for `hansard doctor`
        shown = {name: str(value) for name, value in found.items() if value is not None}
        # One line, unlike other commands': its reader waits for the line to end.
        click.echo(json.dumps(shown))
        return
    lines = [
        ("OTLP/gRPC", endpoints.grpc),
        ("OTLP/HTTP", endpoints.http if half.value != "web" else None),
        ("Socket", endpoints.socket),
        ("Browser", f"{endpoints.http}/" if half.value != "collector" else None),
        ("Sign in", f"{endpoints.http}{endpoints.link}" if endpoints.link else None),
        ("Data", endpoints.data),
    ]
    for label, value in lines:
        if value is not None:
            click.echo(printable(f"{label:<10} {value}"))
