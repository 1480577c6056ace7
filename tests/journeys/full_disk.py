"""A store on a small disk, filled to the last byte. Run as a program by a test.

It needs a mount namespace of its own, and prints what it saw as one JSON object.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from tests.collector.ingesting import span, traces
from tests.journeys.processes import ServingProcess, hansard, serving

MIB = 1 << 20
Json = dict[str, Any]


def post(server: ServingProcess, number: int) -> tuple[int, str]:
    """Send a run of twenty spans of 6 kB; returns the status and the answer."""
    spans = [
        span(one, trace_id=(number + 1).to_bytes(16), attributes={"text": os.urandom(3_000).hex()})
        for one in range(1, 21)
    ]
    request = urllib.request.Request(
        f"{server.http}/v1/traces",
        data=traces(spans).SerializeToString(),
        headers={"content-type": "application/x-protobuf"},
    )
    return answer(request)


def answer(request: urllib.request.Request | str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(request, timeout=240) as response:
            return response.status, response.read().decode(errors="replace")
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode(errors="replace")


def free_bytes(disk: Path) -> int:
    found = os.statvfs(disk)
    return found.f_bavail * found.f_frsize


def fill(disk: Path) -> None:
    """Write until there is no room, as another program would."""
    with (disk / f"other-{len(list(disk.iterdir()))}").open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(MIB))
        except OSError:
            pass
        try:
            while True:
                file.write(bytes(512))
        except OSError:
            pass


def make_room(disk: Path) -> None:
    for other in disk.glob("other-*"):
        other.unlink()


def filled_by_ingest(data: Path, disk: Path) -> Json:
    with serving(data) as server:
        sent, status = 0, 200
        while status == 200 and sent < 400:
            status, _ = post(server, sent)
            sent += status == 200
        health = answer(f"{server.http}/healthz")
        told = {"sent": sent, "status": status, "left_bytes": free_bytes(disk)}
        fill(disk)
        pages = {path: answer(server.http + path)[0] for path in ("/", "/v1/runs", "/health")}
        full = post(server, 999)[0]
        return {**told, "healthz": health, "pages": pages, "full": full, "exit": server.stop()}


def started_on_a_full_disk(data: Path, disk: Path) -> Json:
    with serving(data) as server:
        pages = {path: answer(server.http + path)[0] for path in ("/", "/v1/runs?limit=1")}
        [run] = json.loads(answer(f"{server.http}/v1/runs?limit=1")[1])["items"]
        fill(disk)
        deleted = hansard("runs", "delete", run["run_id"], "--yes", "--data", str(data))
        after = answer(f"{server.http}/v1/runs/{run['run_id']}")[0]
        return {
            "pages": pages,
            "delete": [deleted.returncode, deleted.stderr],
            "deleted": after,
            "exit": server.stop(),
        }


def collected(data: Path, disk: Path) -> Json:
    make_room(disk)
    with serving(data) as server:  # which makes the reserve again
        server.stop()
    fill(disk)
    listed = hansard("runs", "list", "--data", str(data))
    cleaned = hansard("gc", "--max-disk", "1MB", "--data", str(data))
    free = free_bytes(disk)
    make_room(disk)
    with serving(data) as server:
        status = post(server, 1_000)[0]
        return {
            "list": listed.returncode,
            "gc": [cleaned.returncode, cleaned.stderr],
            "free_bytes": free,
            "status": status,
            "healthz": answer(f"{server.http}/healthz")[0],
            "reserve": (data / "reserve").stat().st_size,
            "exit": server.stop(),
        }


def main(disk: Path, size: str) -> None:
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(disk)]
    subprocess.run(mount, check=True)
    data = disk / "data"
    told = [step(data, disk) for step in (filled_by_ingest, started_on_a_full_disk, collected)]
    left = [path.name for path in data.glob("server.*")]
    verified = hansard("verify", "--data", str(data))
    told.append({"left": left, "verify": [verified.returncode, verified.stdout]})
    sys.stdout.write(json.dumps(told))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
