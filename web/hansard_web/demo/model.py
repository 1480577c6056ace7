"""A local model that answers from a file: OpenAI's chat completions over real HTTP, no key.

Stateless but for its prompt cache, which works as the real ones do: what an earlier request began
with is read from the cache, message by message, up to the first one that differs.
"""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from typing import Any

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
    """Return the replies of script.json, in order; the first that fits is given."""
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
        asked = messages[last]["content"]
        fitting = (r for r in self.script if r.when in asked and r.after_tools == answered)
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
