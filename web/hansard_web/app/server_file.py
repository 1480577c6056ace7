"""Where the server of a data folder listens: a file it writes when ready and takes away at the end.

After a crash the file is still there, so readers ask the server before believing it.
"""

from __future__ import annotations

import json
import logging
import os
import ssl
import urllib.request
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

_FILE: Final = "server.json"
_ANSWER_S: Final = 3.0
_log = logging.getLogger("hansard.presence")


@dataclass(frozen=True, slots=True)
class Endpoints:
    """Where a running server listens."""

    http: str  # "http://127.0.0.1:4318"
    grpc: str | None  # "127.0.0.1:4317"; None: this process has no gRPC endpoint
    socket: Path | None
    data: Path
    instance: str = ""  # names this run of the server; no secret
    link: str = field(default="", repr=False)  # path that signs its user in; "" where none does
    # What it was started with, where that may differ from the configuration that a command reads;
    # empty: a version that does not report it. No secrets.
    settings: Mapping[str, Any] = field(default_factory=dict)


def announce(endpoints: Endpoints) -> None:
    """Write down where this process listens; of two on one folder the later one is found.

    On a full disk it serves all the same: commands then need the address in words.
    """
    path = endpoints.data / _FILE
    for left in endpoints.data.glob(f"{path.stem}.[0-9]*"):  # of a start that could not write
        with suppress(OSError):
            left.unlink()
    beside = path.with_suffix(f".{os.getpid()}")
    try:
        beside.touch(mode=0o600)
        beside.write_text(_text(endpoints), encoding="utf-8")
        beside.replace(path)
    except OSError as error:
        _log.warning("cannot write %s: %s; `hansard open` will not find this server", path, error)
        with suppress(OSError):
            beside.unlink()


def withdraw(endpoints: Endpoints) -> None:
    """Take the file away, unless another process has written its own since."""
    path = endpoints.data / _FILE
    with suppress(OSError):
        if path.read_text(encoding="utf-8") == _text(endpoints):
            path.unlink()


def find_server(data: Path) -> Endpoints | None:
    """Return where the server of a data folder listens, None when none answers."""
    try:
        record: dict[str, Any] = json.loads((data / _FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    unix = record["socket"]
    instance = str(record.get("instance", ""))
    settings = record.get("settings", {})
    socket = Path(unix) if unix else None
    endpoints = Endpoints(record["http"], record["grpc"], socket, data, instance, settings=settings)
    return endpoints if answers(endpoints.http) else None


def answers(http: str) -> bool:
    """Say whether a server at this address is well: its /healthz, which needs no token."""
    # No data is sent or believed, so any certificate will do: ours are often self-signed.
    unchecked = ssl.create_default_context()
    unchecked.check_hostname = False
    unchecked.verify_mode = ssl.CERT_NONE
    opener = urllib.request.build_opener(
        urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=unchecked)
    )
    try:
        with opener.open(f"{http}/healthz", timeout=_ANSWER_S) as response:
            return bool(response.status == HTTPStatus.OK)
    except OSError:
        return False


def _text(endpoints: Endpoints) -> str:
    record = {name: value for name, value in asdict(endpoints).items() if name != "link"}
    return json.dumps({**record, "pid": os.getpid()}, default=str)
