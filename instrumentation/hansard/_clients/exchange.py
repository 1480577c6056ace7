"""One request over HTTP and what came back: the bytes, as they were sent and received."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

from hansard._clients.bodies import Attributes
from hansard._clients.guard import observing

# A longer response is not stored; its size is.
MOST_BYTES: Final = 64 * 1024 * 1024

# What an exact replay needs, or the provider's support needs. Never a credential.
_REQUEST_HEADERS: Final = ("content-type", "anthropic-version", "anthropic-beta", "openai-beta")
_RESPONSE_HEADERS: Final = (
    "content-type", "request-id", "x-request-id", "retry-after", "retry-after-ms",
    "openai-processing-ms", "x-should-retry",
)  # fmt: skip
_SAFE_QUERY: Final = ("api-version", "beta")


class ClientExchange:
    """One attempt of a call. `done` is called once, when no more bytes come."""

    __slots__ = (
        "_chunks", "_content", "_done", "_headers", "_is_open", "_size", "_type", "error",
        "first_chunk_s", "is_cut", "request", "status",
    )  # fmt: skip

    def __init__(self, request: Any, done: Callable[[ClientExchange], None]) -> None:
        self.request = request
        self.status: int | None = None
        self.error: BaseException | None = None
        self.first_chunk_s: float | None = None  # on time.perf_counter's clock
        self.is_cut = False  # closed before its end
        # Never the response itself: that one is to be collected when the program drops it.
        self._type: Any = None
        self._headers: Any = None
        self._content: bytes | None = None  # read by the client before we got it
        self._chunks: list[bytes] = []
        self._size = 0
        self._done = done
        self._is_open = [True]  # popped by what ends it: that is atomic, and needs no lock

    def sent(self) -> bytes | None:
        """Return the body of the request; None for one that cannot be read twice."""
        try:
            content = self.request.content
        except Exception:
            return None
        return content if isinstance(content, bytes) else None

    def answered(self, response: Any) -> bool:
        """Take the response; False when its body is still to come."""
        self._type, self._headers = type(response), response.headers
        self.status = response.status_code
        if not response.is_stream_consumed and not response.is_closed:
            return False
        self._content = response.content
        self._is_open.clear()
        return True

    @property
    def is_open(self) -> bool:
        """Whether bytes may still come."""
        return bool(self._is_open) and self.error is None

    @property
    def size(self) -> int:
        return self._size if self._content is None else len(self._content)

    def received(self) -> bytes | None:
        """Return the body without its transfer's compression; None for one too long to keep."""
        if self._content is not None:
            return self._content if len(self._content) <= MOST_BYTES else None
        if self._size > MOST_BYTES:
            return None
        raw = b"".join(self._chunks)
        encoding = self.header("content-encoding")
        if not encoding:
            return raw
        try:  # the client's own decoders; a body that was cut off may not be readable
            headers = {"content-encoding": encoding}
            content = self._type(200, headers=headers, content=raw).content
        except Exception:
            return raw
        return content if isinstance(content, bytes) else raw

    def header(self, name: str) -> str:
        """Return a header of the response; empty where there is none."""
        return "" if self._headers is None else str(self._headers.get(name, ""))

    @property
    def is_events(self) -> bool:
        return self.header("content-type").lower().startswith("text/event-stream")

    # ---- called by the watched stream

    @observing
    def chunk(self, data: bytes) -> None:
        if self.first_chunk_s is None and data:
            self.first_chunk_s = time.perf_counter()
        self._size += len(data)
        if self._size <= MOST_BYTES:
            self._chunks.append(data)
        else:
            self._chunks.clear()

    def ended(self) -> None:
        self._end()

    def failed(self, error: BaseException) -> None:
        if self._is_open:
            self.error = error
        self._end()

    def closed(self) -> None:
        if self._is_open:
            self.is_cut = True
        self._end()

    def _end(self) -> None:
        try:
            self._is_open.pop()
        except IndexError:
            return
        self._done(self)

    def forget(self) -> None:
        """Let go of the bytes; the client may keep its response, and so the stream, for long."""
        self._chunks.clear()
        self._content = self.request = None

    # ---- facts for the span

    def request_attributes(self) -> Attributes:
        """Method, path and safe headers; no host, no key, no cookie."""
        url = self.request.url
        found: Attributes = {"http.request.method": self.request.method, "url.path": url.path}
        query = [(key, value) for key, value in url.params.multi_items() if key in _SAFE_QUERY]
        if query:
            found["url.query"] = "&".join(f"{key}={value}" for key, value in query)
        return found | _headers("http.request.header", self.request.headers, _REQUEST_HEADERS)

    def response_attributes(self) -> Attributes:
        if self.status is None:
            return {}
        found: Attributes = {"http.response.status_code": self.status}
        return found | _headers("http.response.header", self._headers, _RESPONSE_HEADERS)


def _headers(prefix: str, headers: Any, names: tuple[str, ...]) -> Attributes:
    found: Attributes = {}
    for name in names:
        value = headers.get(name)
        if value is not None:
            found[f"{prefix}.{name}"] = [str(value)]
    return found
