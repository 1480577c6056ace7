"""A provider of models on this machine: answers as the real APIs do, over a real socket."""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

WAIT_S = 10.0
SECRET = "sk-proj-" + "T9xQz7LmW2vRk4NbY8cJ1hGd5sFp3aKe6uVi0oXw"
JSON = "application/json"
EVENTS = "text/event-stream; charset=utf-8"


@dataclass(frozen=True)
class Received:
    """A request as it arrived."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Reply:
    """An answer: its pieces are sent one by one; an Event among them is waited for."""

    pieces: Sequence[bytes | threading.Event]
    status: int = 200
    media_type: str = JSON
    headers: dict[str, str] = field(default_factory=dict)
    breaks_off: bool = False  # the connection is closed before the body's end


def json_reply(body: Any, *, status: int = 200, **headers: str) -> Reply:
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply([json.dumps(body).encode()], status=status, headers=sent)


def stream_reply(
    *events: Any, gate: threading.Event | None = None, breaks_off: bool = False
) -> Reply:
    """A stream of events; with a gate, all but the first wait for it."""
    pieces: list[bytes | threading.Event] = [event_bytes(event) for event in events]
    if gate is not None:
        pieces.insert(1, gate)
    return Reply(pieces, media_type=EVENTS, breaks_off=breaks_off)


def event_bytes(event: Any) -> bytes:
    if isinstance(event, str):
        return f"data: {event}\n\n".encode()
    name = f"event: {event['type']}\n" if "type" in event else ""
    return f"{name}data: {json.dumps(event, ensure_ascii=False)}\n\n".encode()


class Provider:
    """The server; `replies` are given first, in order, then what `answer` makes of a request, else
    the usual answer to each path.
    """

    def __init__(self, address: str) -> None:
        self.address = address
        self.received: list[Received] = []
        self.replies: deque[Reply] = deque()
        self.answer: Callable[[Received], Reply] | None = None

    def reply_to(self, request: Received) -> Reply:
        if self.replies:
            return self.replies.popleft()
        if self.answer is not None:
            return self.answer(request)
        path = request.path.partition("?")[0]
        if request.json.get("stream"):
            return stream_reply(*STREAMS[path])
        return json_reply(ANSWERS[path])


@contextmanager
def providing() -> Iterator[Provider]:
    server = _Server(("127.0.0.1", 0), _Handler)
    provider = Provider(f"http://127.0.0.1:{server.server_address[1]}")
    server.provider = provider  # type: ignore[attr-defined]  # how a handler finds it
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield provider
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away half-way is what some tests are about."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        provider: Provider = self.server.provider  # type: ignore[attr-defined]  # set above
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = Received(self.path, headers, body)
        provider.received.append(request)
        try:
            self._answer(provider.reply_to(request))
        except OSError:  # the client went away
            self.close_connection = True

    def _answer(self, reply: Reply) -> None:
        self.send_response(reply.status)
        self.send_header("content-type", reply.media_type)
        self.send_header("x-request-id", "req_1")
        self.send_header("transfer-encoding", "chunked")
        for name, value in reply.headers.items():
            self.send_header(name, value)
        self.end_headers()
        for piece in reply.pieces:
            if isinstance(piece, threading.Event):
                assert piece.wait(WAIT_S)
                continue
            self.wfile.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
            self.wfile.flush()
        if reply.breaks_off:
            self.close_connection = True
            return
        self.wfile.write(b"0\r\n\r\n")

    def log_message(self, format: str, *args: object) -> None:
        pass


# ---- the usual answers

RESPONSE: dict[str, Any] = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1,
    "model": "gpt-6-luna-2026-10-01",
    "status": "completed",
    "output": [
        {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Hm."}]},
        {
            "type": "message",
            "id": "msg_1",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": "Grüße!", "annotations": []}],
        },
        {
            "type": "function_call",
            "id": "fc_1",
            "call_id": "call_1",
            "name": "get",
            "arguments": '{"k":1}',
            "status": "completed",
        },
    ],
    "parallel_tool_calls": True,
    "tool_choice": "auto",
    "tools": [],
    "usage": {
        "input_tokens": 100,
        "input_tokens_details": {"cached_tokens": 64, "cache_write_tokens": 16},
        "output_tokens": 20,
        "output_tokens_details": {"reasoning_tokens": 8},
        "total_tokens": 120,
    },
}
CHAT: dict[str, Any] = {
    "id": "chatcmpl_1",
    "object": "chat.completion",
    "created": 1,
    "model": "gpt-6-luna-2026-10-01",
    "choices": [
        {
            "index": 0,
            "finish_reason": "tool_calls",
            "message": {
                "role": "assistant",
                "content": "Grüße!",
                "tool_calls": [
                    {
                        "id": "call_1",
                        "type": "function",
                        "function": {"name": "get", "arguments": '{"k":1}'},
                    }
                ],
            },
        }
    ],
    "usage": {
        "prompt_tokens": 100,
        "prompt_tokens_details": {"cached_tokens": 64},
        "completion_tokens": 20,
        "completion_tokens_details": {"reasoning_tokens": 8},
        "total_tokens": 120,
    },
}
EMBEDDING: dict[str, Any] = {
    "object": "list",
    "model": "text-embedding-4",
    "data": [{"object": "embedding", "index": 0, "embedding": [0.5, 0.25]}],
    "usage": {"prompt_tokens": 5, "total_tokens": 5},
}
MESSAGE: dict[str, Any] = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude-haiku-5-5",
    "content": [
        {"type": "text", "text": "Grüße!"},
        {"type": "tool_use", "id": "toolu_1", "name": "get", "input": {"k": 1}},
    ],
    "stop_reason": "tool_use",
    "stop_sequence": None,
    "usage": {
        "input_tokens": 20,
        "cache_read_input_tokens": 64,
        "cache_creation_input_tokens": 16,
        "cache_creation": {"ephemeral_5m_input_tokens": 16, "ephemeral_1h_input_tokens": 0},
        "output_tokens": 20,
        "output_tokens_details": {"thinking_tokens": 8},
    },
}
ANSWERS: dict[str, Any] = {
    "/v1/responses": RESPONSE,
    "/v1/responses/input_tokens": {"object": "response.input_tokens", "input_tokens": 11},
    "/v1/chat/completions": CHAT,
    "/openai/deployments/gpt-6-luna/chat/completions": CHAT,
    "/v1/embeddings": EMBEDDING,
    "/v1/messages": MESSAGE,
    "/v1/messages/count_tokens": {"input_tokens": 11},
}


def _responses_stream() -> list[Any]:
    started = {**RESPONSE, "status": "in_progress", "output": [], "usage": None}
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": started},
        {
            "type": "response.output_item.added",
            "output_index": 0,
            "item": {"type": "message", "id": "msg_1", "role": "assistant", "content": []},
        },
        *(
            {
                "type": "response.output_text.delta",
                "output_index": 0,
                "content_index": 0,
                "item_id": "msg_1",
                "delta": delta,
            }
            for delta in ("Grü", "ße!")
        ),
        {"type": "response.completed", "response": RESPONSE},
    ]
    return [{**event, "sequence_number": number} for number, event in enumerate(events)]


def _chat_stream() -> list[Any]:
    def chunk(delta: dict[str, Any], **more: Any) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "finish_reason": None, **more}
        return {**head, "choices": [choice]}

    head: dict[str, Any] = {"id": "chatcmpl_1", "object": "chat.completion.chunk", "created": 1}
    head["model"] = CHAT["model"]
    call: dict[str, Any] = CHAT["choices"][0]["message"]["tool_calls"][0]
    return [
        chunk({"role": "assistant", "content": ""}),
        chunk({"content": "Grü"}),
        chunk({"content": "ße!"}),
        chunk({"tool_calls": [{"index": 0, **call}]}),
        chunk({}, finish_reason="tool_calls"),
        {**head, "choices": [], "usage": CHAT["usage"]},
        "[DONE]",
    ]


def _message_stream() -> list[Any]:
    usage: dict[str, Any] = {**MESSAGE["usage"], "output_tokens": 1}
    content: list[dict[str, Any]] = MESSAGE["content"]
    text, tool = content
    return [
        {"type": "message_start", "message": {**MESSAGE, "content": [], "usage": usage}},
        {"type": "content_block_start", "index": 0, "content_block": {**text, "text": ""}},
        _delta(0, type="text_delta", text="Grü"),
        {"type": "ping"},
        _delta(0, type="text_delta", text="ße!"),
        {"type": "content_block_stop", "index": 0},
        {"type": "content_block_start", "index": 1, "content_block": {**tool, "input": {}}},
        _delta(1, type="input_json_delta", partial_json='{"k":'),
        _delta(1, type="input_json_delta", partial_json="1}"),
        {"type": "content_block_stop", "index": 1},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "tool_use", "stop_sequence": None},
            "usage": {"output_tokens": 20, "output_tokens_details": {"thinking_tokens": 8}},
        },
        {"type": "message_stop"},
    ]


def _delta(index: int, **delta: str) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": delta}


STREAMS: dict[str, list[Any]] = {
    "/v1/responses": _responses_stream(),
    "/v1/chat/completions": _chat_stream(),
    "/v1/messages": _message_stream(),
}
