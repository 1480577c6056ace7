"""The demo from outside: programs are started against a running server and judged by its API."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from typing import Any, Final

from hansard_compiler.errors import HansardError
from hansard_web.app.server_file import Endpoints
from hansard_web.demo.agent import Report

# A local model that answers from a file: OpenAI's chat completions over real HTTP, no key.
#
# Stateless but for its prompt cache, which works as the real ones do: what an earlier request began
# with is read from the cache, message by message, up to the first one that differs.

_CHARACTERS_PER_TOKEN = 4
_MESSAGE_OVERHEAD_TOKENS = 4


@dataclass(frozen=True, slots=True)
class Reply:
    """What the model does when a user text holds `when` and so many tools have answered since."""

    when: str
    after_tools: int
    text: str = ""
    tool_calls: Sequence[Mapping[str, Any]] = ()
    delay_ms: int = 0
    fail_status: int = 0  # an HTTP error instead of an answer


def load_script() -> list[Reply]:
    """Return the replies of script.json, in order; the first that fits is sent."""
    source = files("hansard_web.demo").joinpath("script.json").read_text(encoding="utf-8")
    return [Reply(**entry) for entry in json.loads(source)]


@dataclass
class ScriptedModel:
    """Chooses replies and counts tokens. The lock guards the cache; request threads touch it."""

    script: Sequence[Reply]
    _cache: set[bytes] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def find_reply(self, messages: Sequence[Mapping[str, Any]]) -> Reply | None:
        """Return the reply to the last user message, given what tools have answered since."""
        last = max(i for i, message in enumerate(messages) if message["role"] == "user")
        answered = sum(message["role"] == "tool" for message in messages[last:])
        prompt = messages[last]["content"]
        fitting = (r for r in self.script if r.when in prompt and r.after_tools == answered)
        return next(fitting, None)

    def count_cached(self, model: str, messages: Sequence[Mapping[str, Any]]) -> int:
        """Return how many input tokens an earlier request had sent, and remember these."""
        cached, is_hit = 0, True
        digest = hashlib.sha256(model.encode())
        with self._lock:
            for message in messages:
                digest.update(json.dumps(message, sort_keys=True).encode())
                key = digest.digest()
                is_hit = is_hit and key in self._cache
                cached += count_tokens([message]) if is_hit else 0
                self._cache.add(key)
        return cached


def count_tokens(messages: Sequence[Mapping[str, Any]]) -> int:
    """Return about how many tokens messages have: four characters each."""
    characters = sum(len(json.dumps(message, ensure_ascii=False)) for message in messages)
    return characters // _CHARACTERS_PER_TOKEN + _MESSAGE_OVERHEAD_TOKENS * len(messages)


@contextmanager
def serving_model() -> Iterator[str]:
    """Serve the scripted model on a free loopback port; yields its base URL."""
    model = ScriptedModel(load_script())

    class Handler(_Handler):
        scripted = model

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, name="scripted-model", daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    scripted: ScriptedModel
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        reply = self.scripted.find_reply(request["messages"])
        if reply is None:
            self._answer(400, {"error": {"message": "the script has no reply to this"}})
            return
        time.sleep(reply.delay_ms / 1000)  # a model thinks; the waterfall should show it
        if reply.fail_status:
            self._answer(reply.fail_status, {"error": {"message": reply.text}})
            return
        cached = self.scripted.count_cached(request["model"], request["messages"])
        self._answer(200, _completion(request, reply, cached=cached))

    def _answer(self, status: int, body: Mapping[str, Any]) -> None:
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: the story on stdout is the demo's."""


def _completion(request: Mapping[str, Any], reply: Reply, *, cached: int) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": reply.text or None}
    identity = hashlib.sha256(json.dumps(request, sort_keys=True).encode()).hexdigest()[:20]
    if reply.tool_calls:
        message["tool_calls"] = [
            {
                "id": f"call_{identity}{number}",
                "type": "function",
                "function": {"name": call["name"], "arguments": json.dumps(call["arguments"])},
            }
            for number, call in enumerate(reply.tool_calls)
        ]
    prompt = count_tokens(request["messages"])
    completion = count_tokens([message])
    return {
        "id": f"chatcmpl-{identity}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": request["model"],
        "choices": [
            {
                "index": 0,
                "message": message,
                "finish_reason": "tool_calls" if reply.tool_calls else "stop",
            }
        ],
        "usage": {
            "prompt_tokens": prompt,
            "completion_tokens": completion,
            "total_tokens": prompt + completion,
            "prompt_tokens_details": {"cached_tokens": cached},
        },
    }


# Each program exports over the protocol named here: both are shown to work.
PROGRAMS: Final = {"support-desk": "grpc", "research": "http/protobuf", "night-jobs": "grpc"}
_EXPORT_DELAY_MS: Final = 200  # of the batch processor: runs are seen while they run
_SPOKEN: Final = "crack from top to bottom"  # by a customer, in one conversation of four runs
_CONVERSATION: Final = "order-a-1042"
_RUNS_OF_CONVERSATION: Final = 4


class DemoFailed(HansardError):
    """The demo's own runs did not come back as they were sent."""

    code = "demo_failed"


@dataclass(frozen=True, slots=True)
class Seen:
    """A run as its program counted it, with the program's name and protocol."""

    program: str
    protocol: str
    report: Report


def run_programs(endpoints: Endpoints, *, on_run: Callable[[Seen], None]) -> list[Seen]:
    """Run the three programs at once and return their runs; `on_run` gets each as it ends."""
    with serving_model() as model_url, ThreadPoolExecutor(len(PROGRAMS)) as threads:

        def run(program: str) -> list[Seen]:
            seen = []
            for one in _run_program(program, endpoints, model_url=model_url):
                on_run(one)
                seen.append(one)
            return seen

        return [one for seen in threads.map(run, PROGRAMS) for one in seen]


def _run_program(program: str, endpoints: Endpoints, *, model_url: str) -> Iterator[Seen]:
    protocol = PROGRAMS[program]
    with subprocess.Popen(
        [sys.executable, "-m", "hansard_web.demo.programs", program, model_url],
        env=_environment(program, protocol, endpoints),
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,  # Ctrl+C is for the demo; its programs end by themselves in seconds
    ) as process:
        assert process.stdout is not None  # requested above
        for line in process.stdout:
            yield Seen(program, protocol, Report(**json.loads(line)))
    if process.returncode:
        raise DemoFailed(f"the program {program} ended with {process.returncode}")


def _environment(program: str, protocol: str, endpoints: Endpoints) -> dict[str, str]:
    """Return what a user would set to send an instrumented program's spans here."""
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("OTEL_", "HANSARD_"))}
    return inherited | {
        "OTEL_SERVICE_NAME": program,
        "OTEL_EXPORTER_OTLP_PROTOCOL": protocol,
        "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://{endpoints.grpc}"
        if protocol == "grpc"
        else endpoints.http,
        "OTEL_BSP_SCHEDULE_DELAY": str(_EXPORT_DELAY_MS),
        "NO_PROXY": "127.0.0.1,localhost",  # a proxy of this machine has no part in this
    }


# ---- reading it back


def check(endpoints: Endpoints, runs: Sequence[Seen]) -> None:
    """Compare the store with what the programs counted; raises DemoFailed with every difference."""
    differences = [line for seen in runs for line in _differences(endpoints, seen)]
    differences += _expect(
        f"runs of {_CONVERSATION}",
        _RUNS_OF_CONVERSATION,
        len(_get(endpoints, "/v1/runs", conversation=_CONVERSATION)["items"]),
    )
    hits = _get(endpoints, "/v1/search", q=f'"{_SPOKEN}"')["items"]
    differences += _expect(f"search finds {_SPOKEN!r}", True, bool(hits))
    if differences:
        raise DemoFailed("read back otherwise than sent:\n  " + "\n  ".join(differences))


def _differences(endpoints: Endpoints, seen: Seen) -> list[str]:
    report = seen.report
    run = _get(endpoints, f"/v1/runs/{report.run_id}")
    tokens = run["tokens"] or {}
    found = {
        "name": run["name"],
        "agent": run["agent"],
        "status": run["status"],
        "service": run["service_names"],
        "conversation": run["conversation_id"],
        "model calls": run["model_calls"],
        "tool calls": run["tool_calls"],
        "tokens": {key: tokens.get(key) or 0 for key in report.tokens},
    }
    expected = {
        "name": f"invoke_agent {report.agent}",
        "agent": report.agent,
        "status": report.status,
        "service": [seen.program],
        "conversation": report.conversation_id,
        "model calls": report.model_calls,
        "tool calls": report.tool_calls,
        "tokens": report.tokens,
    }
    return [
        line
        for what, value in expected.items()
        for line in _expect(f"{report.agent} {report.run_id[:8]}: {what}", value, found[what])
    ]


def _expect(what: str, expected: object, found: object) -> list[str]:
    return [] if expected == found else [f"{what}: expected {expected!r}, found {found!r}"]


def _get(endpoints: Endpoints, path: str, **query: str) -> Mapping[str, Any]:
    url = f"{endpoints.http}{path}?{urllib.parse.urlencode(query)}"
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url, timeout=10) as response:
            body: dict[str, Any] = json.load(response)
            return body
    except OSError as error:  # urllib's errors are OSErrors
        raise DemoFailed(f"GET {path}: {error}") from None
