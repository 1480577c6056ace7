"""The demo from outside: programs are started against a running server and judged by its API."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

from hansard_compiler.errors import HansardError
from hansard_web.app.server_file import Endpoints
from hansard_web.demo.agent import DemoReport

# Each program exports over the protocol named here: both are shown to work.
PROGRAMS: Final = {"support-desk": "grpc", "research": "http/protobuf", "night-jobs": "grpc"}
_EXPORT_DELAY_MS: Final = 200  # of the batch processor: runs are seen while they run
_SPOKEN: Final = "crack from top to bottom"  # by a customer, in one conversation of four runs
_CONVERSATION: Final = "order-a-1042"
_RUNS_OF_CONVERSATION: Final = 4
_LONGEST_S: Final = 30.0  # that the server may take to answer


class DemoFailed(HansardError):
    """The demo's own runs did not come back as they were sent."""

    code = "demo_failed"


class Api:
    """The JSON API, as any program would use it: the person who approves, and the lookups."""

    def __init__(self, endpoints: Endpoints, *, token: str = "") -> None:
        self._base = endpoints.http
        self._headers = {"authorization": f"Bearer {token}"} if token else {}
        # A proxy of this machine has no part in this.
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def get(self, path: str, **query: Any) -> dict[str, Any]:
        """Return the answer to a GET. Raises DemoFailed."""
        parameters = {name: value for name, value in query.items() if value is not None}
        return self._ask(
            f"{path}?{urllib.parse.urlencode(parameters)}" if parameters else path, None
        )

    def post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer to a POST of JSON. Raises DemoFailed."""
        return self._ask(path, json.dumps(body).encode())

    def _ask(self, path: str, body: bytes | None) -> dict[str, Any]:
        kind = {} if body is None else {"content-type": "application/json"}
        request = urllib.request.Request(self._base + path, body, {**self._headers, **kind})
        try:
            with self._opener.open(request, timeout=_LONGEST_S) as response:
                reply: dict[str, Any] = json.load(response)
                return reply
        except urllib.error.HTTPError as error:
            raise DemoFailed(
                f"{request.get_method()} {path}: {error.code} {error.read()[:500].decode()}"
            ) from None
        except OSError as error:
            raise DemoFailed(f"{request.get_method()} {path}: {error}") from None

    def until(self, path: str, *, is_there: Any, **query: Any) -> dict[str, Any]:
        """Ask until the answer is as expected: what was just sent is stored within a moment."""
        deadline_s = time.monotonic() + _LONGEST_S
        while not is_there(body := self.get(path, **query)):
            if time.monotonic() > deadline_s:
                raise DemoFailed(f"{path} did not come to be as expected")
            time.sleep(0.05)
        return body


def reports_of(module: str, *arguments: str, name: str, **environment: str) -> Iterator[Any]:
    """Run a program in a process of its own, as a user would, and yield each JSON line it prints.

    Raises DemoFailed where it fails.
    """
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("OTEL_", "HANSARD_"))}
    # A proxy of this machine has no part in this.
    own = {"NO_PROXY": "127.0.0.1,localhost", **environment}
    with subprocess.Popen(
        [sys.executable, "-m", f"hansard_web.demo.{module}", *arguments],
        env=inherited | own,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,  # Ctrl+C is for the demo; its programs end by themselves in seconds
    ) as process:
        assert process.stdout is not None  # requested above
        for line in process.stdout:
            yield json.loads(line)
    if process.returncode:
        raise DemoFailed(f"{name} ended with {process.returncode}")


def sdk_environment(endpoints: Endpoints) -> dict[str, str]:
    """Return what a user would set for a program with the SDK in it."""
    return {
        "HANSARD_ENDPOINT": endpoints.http,
        "HANSARD_DATA": str(endpoints.data / "agent"),
        "HANSARD_EXPORT_DELAY_MS": str(_EXPORT_DELAY_MS),
    }


def hold(claims: Mapping[str, bool]) -> None:
    """Hold a story to what it claims; raises DemoFailed with what is not so."""
    wrong = [claim for claim, holds in claims.items() if not holds]
    if wrong:
        raise DemoFailed("this does not hold: " + "; ".join(wrong))


# ---- the programs with the stock SDK


@dataclass(frozen=True, slots=True)
class Seen:
    """A run as its program counted it, with the program's name and protocol."""

    program: str
    protocol: str
    report: DemoReport


def run_programs(endpoints: Endpoints) -> list[Seen]:
    """Run the three programs at once and return their runs."""
    with ThreadPoolExecutor(len(PROGRAMS)) as threads:
        return [
            one
            for seen in threads.map(lambda program: _run_program(program, endpoints), PROGRAMS)
            for one in seen
        ]


def _run_program(program: str, endpoints: Endpoints) -> list[Seen]:
    """Run a program with what a user would set to send an instrumented program's spans here."""
    protocol = PROGRAMS[program]
    address = f"http://{endpoints.grpc}" if protocol == "grpc" else endpoints.http
    reports = reports_of(
        "programs",
        program,
        name=f"the program {program}",
        OTEL_SERVICE_NAME=program,
        OTEL_EXPORTER_OTLP_PROTOCOL=protocol,
        OTEL_EXPORTER_OTLP_ENDPOINT=address,
        OTEL_BSP_SCHEDULE_DELAY=str(_EXPORT_DELAY_MS),
    )
    return [Seen(program, protocol, DemoReport(**report)) for report in reports]


def check(endpoints: Endpoints, runs: Sequence[Seen]) -> None:
    """Compare the store with what the programs counted; raises DemoFailed with every difference."""
    api = Api(endpoints)
    differences = [line for seen in runs for line in _differences(api, seen)]
    differences += _expect(
        f"runs of {_CONVERSATION}",
        _RUNS_OF_CONVERSATION,
        len(api.get("/v1/runs", conversation=_CONVERSATION)["items"]),
    )
    hits = api.get("/v1/search", q=f'"{_SPOKEN}"')["items"]
    differences += _expect(f"search finds {_SPOKEN!r}", True, bool(hits))
    if differences:
        raise DemoFailed("read back otherwise than sent:\n  " + "\n  ".join(differences))


def _differences(api: Api, seen: Seen) -> list[str]:
    report = seen.report
    run = api.get(f"/v1/runs/{report.run_id}")
    tokens = run["tokens"] or {}
    both = {
        "name": (f"invoke_agent {report.agent}", run["name"]),
        "agent": (report.agent, run["agent"]),
        "status": (report.status, run["status"]),
        "service": ([seen.program], run["service_names"]),
        "conversation": (report.conversation_id, run["conversation_id"]),
        "model calls": (report.model_calls, run["model_calls"]),
        "tool calls": (report.tool_calls, run["tool_calls"]),
        "tokens": (report.tokens, {key: tokens.get(key) or 0 for key in report.tokens}),
    }
    return [
        line
        for what, (expected, found) in both.items()
        for line in _expect(f"{report.agent} {report.run_id[:8]}: {what}", expected, found)
    ]


def _expect(what: str, expected: object, found: object) -> list[str]:
    return [] if expected == found else [f"{what}: expected {expected!r}, found {found!r}"]
