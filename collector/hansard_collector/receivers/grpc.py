"""OTLP/gRPC: the three Export methods, taking raw bytes and answering after the commit."""

from __future__ import annotations

import ssl
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, NoReturn
from urllib.parse import unquote

import grpc

from hansard._export.otlp.exporter import HELLO, PRODUCT
from hansard_collector.errors import StoreBusy
from hansard_collector.otlp.signals import CONTRACTS
from hansard_collector.pipeline.requests import (
    Encoding,
    Ingest,
    IngestRequest,
    IngestResult,
    RequestSender,
    Signal,
)
from hansard_collector.receivers.export_response import (
    MAX_BODY_BYTES,
    STORE_TOO_SLOW,
    STORE_WAIT_S,
    ExportRefusal,
    RejectReason,
    capped,
    export_response,
    outcome_of,
    report,
    retry_info,
    status_message,
    submit,
)
from hansard_collector.receivers.memory import give_back_free_pages, resident_bytes
from hansard_compiler.errors import ConfigError

# Calls that wait for their message: each holds a worker, and perhaps much of a large message.
#
# The library waits for a message for ever, and keeps what has come of it where Python cannot count
# it: how large it will be is known when it is whole. It begins to receive on demand. So
# calls of senders that may send something large are let in a few at a time, and one at a time while
# memory is short. A thread looks at those that are being received: one gets a deadline, a short one
# while others wait for a worker, and when the process has grown too much only the few oldest go on.

# Each waits for a commit most of its time, so many cost little; idle ones are not started.
_WORKERS = 64
_TICK_S = 0.25
_LARGE_AT_ONCE = 4  # messages that may go on when memory is short
_LARGE_BYTES = 4 << 20  # stock exporters send less, and receivers of others take no more
_KNOWN_SENDERS = 4096
# Of senders that are not known to send small messages:
_FRESH_AT_ONCE = 2  # begin to send at once; those of before are slow, or show in memory
_FRESH_S = 0.1
_SHORT_FRESH_S = 0.5  # the same while memory is short, for one at a time
_LINE = 32  # wait for that at most, which is half of the workers,
_LINE_OF_SENDER = 4  # and of one sender


@dataclass(frozen=True, slots=True)
class GrpcSettings:
    """The address of the gRPC receiver, and its limits."""

    host: str = "127.0.0.1"
    port: int = 4317  # 0 picks a free one
    max_message_bytes: int = MAX_BODY_BYTES
    store_wait_s: float = STORE_WAIT_S
    message_wait_s: float = 20.0  # from the call's beginning to its whole message
    busy_wait_s: float = 1.0  # the same, while other calls find no worker, or memory is short
    # Of the process since its start: before large messages are received one at a time, and before
    # few of those that are may go on.
    short_bytes: int = 128 << 20
    max_growth_bytes: int = 384 << 20
    tls_certificate: Path | None = None  # PEM, with the chain; needs tls_key
    tls_key: Path | None = None


@dataclass(slots=True, eq=False)
class _Waiting:
    """A call whose message is not there yet."""

    cut: Callable[[], object]  # ends the call, from any thread
    sender: str
    is_small: bool  # the sender's last message was
    began_s: float
    is_cut: bool = False


class StallWatch:
    """Lets calls receive their message, and ends those whose message takes too long.

    The lock guards the calls, those that wait to be let in, and whether it ends. Touched by every
    worker of the receiver and by its own thread.
    """

    def __init__(self, settings: GrpcSettings) -> None:
        self._settings = settings
        self._changed = threading.Condition()
        self._waiting: dict[_Waiting, None] = {}  # in the order in which they began
        self._line: dict[object, str] = {}  # of calls that are not let in yet, with their senders
        self._sizes: OrderedDict[str, int] = OrderedDict()  # of each sender's last message
        self._is_ended = False
        self._thread = threading.Thread(target=self._run, name="otlp-grpc-stalls", daemon=True)
        self._first_bytes = 0

    def start(self) -> None:
        """Begin to watch; memory is compared with that of now."""
        self._first_bytes = resident_bytes()
        self._thread.start()

    def stop(self) -> None:
        """End the thread; a second call does nothing."""
        with self._changed:
            self._is_ended = True
            self._changed.notify_all()
        if self._thread.ident is not None:
            self._thread.join()

    def begin(self, cut: Callable[[], object], *, sender: str, within_s: float) -> _Waiting | None:
        """Let a call receive its message from now on; `end` must follow.

        `sender` is the connection's address. None when too many others wait, or it could not be let
        in within the time.
        """
        with self._changed:
            is_small = self._sizes.get(sender, _LARGE_BYTES) < _LARGE_BYTES
            if not is_small and not self._wait_in_line(sender, time.monotonic() + within_s):
                return None
            waiting = _Waiting(cut, sender, is_small, time.monotonic())
            self._waiting[waiting] = None
            self._changed.notify_all()
        return waiting

    def end(self, waiting: _Waiting, *, size_bytes: int = 0) -> None:
        """The call has its message of this size, or none will come."""
        with self._changed:
            del self._waiting[waiting]
            if size_bytes:
                self._sizes[waiting.sender] = size_bytes
                self._sizes.move_to_end(waiting.sender)
                if len(self._sizes) > _KNOWN_SENDERS:
                    self._sizes.popitem(last=False)
            if self._line:
                self._changed.notify_all()
        if size_bytes >= _LARGE_BYTES:
            # What the library had of it lies in thousands of pieces, which its allocator keeps.
            give_back_free_pages()

    def _wait_in_line(self, sender: str, until_s: float) -> bool:
        """Wait for the calls before, and for room; under the lock."""
        places = list(self._line.values())
        if len(places) >= _LINE or places.count(sender) >= _LINE_OF_SENDER:
            return False
        waiter = object()
        self._line[waiter] = sender
        try:
            while self._next() is not waiter or not self._has_room():
                left_s = until_s - time.monotonic()
                if left_s <= 0 or self._is_ended:
                    return False
                self._changed.wait(min(left_s, _FRESH_S))
            return True
        finally:
            del self._line[waiter]

    def _next(self) -> object:
        """Return who is first: of the sender with the fewest calls on their way, the earliest."""
        busy = Counter(one.sender for one in self._waiting)
        return min(self._line, key=lambda waiter: busy[self._line[waiter]])

    def _has_room(self) -> bool:
        """Return whether one more may send a large message; under the lock."""
        is_short = self._growth() > self._settings.short_bytes
        fresh_s = _SHORT_FRESH_S if is_short else _FRESH_S
        began_s = time.monotonic() - fresh_s
        fresh = sum(not one.is_small and one.began_s > began_s for one in self._waiting)
        return fresh < (1 if is_short else _FRESH_AT_ONCE)

    def _growth(self) -> int:
        return resident_bytes() - self._first_bytes

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._is_ended or self._waiting)
                if self._is_ended:
                    return
                self._changed.wait_for(lambda: self._is_ended, timeout=_TICK_S)
                stalled = self._stalled()
            for waiting in stalled:
                waiting.is_cut = True
                waiting.cut()

    def _stalled(self) -> list[_Waiting]:
        """Return the calls that have had their time; under the lock."""
        now_s = time.monotonic()
        is_busy = len(self._waiting) + len(self._line) >= _WORKERS // 2
        wait_s = self._settings.busy_wait_s if is_busy else self._settings.message_wait_s
        pending = [one for one in self._waiting if not one.is_cut]
        stalled = [one for one in pending if now_s - one.began_s >= wait_s]
        if self._growth() > self._settings.max_growth_bytes:
            slow = [one for one in pending if now_s - one.began_s >= _TICK_S]
            stalled += [one for one in slow[_LARGE_AT_ONCE:] if one not in stalled]
        return stalled


# Refusals that wait: a wrong token is answered late, by gRPC as by HTTP.
#
# Each holds one of the workers, so the limiter says how long one waits and how many do at once;
# what is over is answered at once. A wait ends early when its caller leaves, or the receiver
# stops.

# Takes an address without its port; counts the failure, gives the seconds to wait, and keeps a
# place among those that wait until it is left.
Limiter = Callable[[str], AbstractContextManager[float]]
MOST_HELD: Final = 16  # the limiter gives no more; the workers that may be held beside the others


@contextmanager
def unlimited(_address: str) -> Iterator[float]:
    """The limiter of a receiver that has no token to guess."""
    yield 0.0


class HeldBack:
    """The refusals that wait now. The lock guards them and whether it ended; workers touch both."""

    def __init__(self, limiter: Limiter) -> None:
        self._limiter = limiter
        self._lock = threading.Lock()
        self._waiting: set[threading.Event] = set()
        self._is_ended = False

    def wait(self, address: str, context: grpc.ServicerContext) -> None:
        """Count a failure of an address, and wait for the limiter's delay."""
        over = threading.Event()
        with self._limiter(_host(address)) as wait_s:
            if not wait_s or not context.add_callback(over.set):
                return
            with self._lock:
                if self._is_ended:
                    return
                self._waiting.add(over)
            over.wait(wait_s)
            with self._lock:
                self._waiting.discard(over)

    def end(self) -> None:
        """Release all that waits, and let nothing wait any more."""
        with self._lock:
            self._is_ended = True
            for over in self._waiting:
                over.set()


def _host(address: str) -> str:
    """Return the address of a sender without its port, as HTTP knows it."""
    host, has_port, _ = address.rpartition(":")
    return host.strip("[]") if has_port else address


_MOST_CALLS = 1024  # begun and waiting for a worker; more are refused unread
_CONNECTION = (
    # What a connection may begin at once: one sender cannot take all workers for long.
    ("grpc.max_concurrent_streams", 100),
    ("grpc.server_handshake_timeout_ms", 20_000),
    # A sender that vanished is noticed within 80 s, though TCP would wait for hours.
    ("grpc.keepalive_time_ms", 60_000),
    ("grpc.keepalive_timeout_ms", 20_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.min_recv_ping_interval_without_data_ms", 10_000),  # senders may ask, too
    # Senders open a new connection by themselves: none stays for ever.
    ("grpc.max_connection_idle_ms", 600_000),
    ("grpc.max_connection_age_ms", 3_600_000),
    ("grpc.max_connection_age_grace_ms", 60_000),
)
_MAX_DETAIL_BYTES = 1024  # of a message: trailers over 8 KiB are dropped by the senders' library
_SIGNALS = {f"/{contract.service}/Export": signal for signal, contract in CONTRACTS.items()}
_CODES = {code.value[0]: code for code in grpc.StatusCode}

_UNKNOWN_METHOD = ExportRefusal(
    RejectReason.UNKNOWN_PATH, "not received here: only traces, logs and metrics (Export) are"
)
# The library refuses a message over the limit by itself. All its server sees is a call without a
# message, ended either properly or with an error, as the race between the two falls out.
_NO_MESSAGE = ExportRefusal(
    RejectReason.TOO_LARGE, "a message over the size limit, or a call that brought none"
)
_SENDER_STALLED = ExportRefusal(RejectReason.SENDER_STALLED, "the message did not come in time")
_SENDER_GONE = ExportRefusal(
    RejectReason.SENDER_GONE, "the sender gave up before its request was read"
)
_NO_ROOM = ExportRefusal(
    RejectReason.BUSY,
    "large messages of others are being received; send it again in a second",
    retry_after_s=StoreBusy.retry_after_s,
)


_UNKNOWN = RejectReason.UNAUTHENTICATED
NO_TOKEN = ExportRefusal(_UNKNOWN, "send the token as metadata: authorization: Bearer <token>")
WRONG_TOKEN = ExportRefusal(
    _UNKNOWN, "the token is wrong; a token that is valid, or none, is needed"
)
NOT_FOR_SENDING = ExportRefusal(RejectReason.FORBIDDEN, "this token may not send telemetry")

# Takes the value of the metadata `authorization`, "" if there is none; None lets the call in.
Authorise = Callable[[str], ExportRefusal | None]


def allow_all(authorization: str) -> None:
    """For a receiver without a token, which listens on the loopback only."""


class GrpcReceiver:
    """A running gRPC server; `port` is the one it really listens on."""

    def __init__(
        self,
        ingest: Ingest,
        settings: GrpcSettings | None = None,
        *,
        authorise: Authorise = allow_all,
        limiter: Limiter = unlimited,
    ) -> None:
        """Bind the port, so that a taken one is a ConfigError before anything else is started.

        `limiter` counts calls with a wrong token and says how long each waits for its answer.
        """
        settings = settings or GrpcSettings()
        self._held = HeldBack(limiter)
        workers = _WORKERS + MOST_HELD
        self._workers = ThreadPoolExecutor(workers, thread_name_prefix="otlp-grpc")
        self._watch = StallWatch(settings)
        self._server = grpc.server(
            self._workers,
            handlers=[
                _OtlpMethods(
                    ingest,
                    settings=settings,
                    authorise=authorise,
                    watch=self._watch,
                    held=self._held,
                )
            ],
            maximum_concurrent_rpcs=_MOST_CALLS,
            options=[
                *_CONNECTION,
                ("grpc.max_receive_message_length", settings.max_message_bytes),
                ("grpc.max_send_message_length", settings.max_message_bytes),
                ("grpc.so_reuseport", 0),  # or two servers would share the port, and the data
            ],
        )
        self.port = _bind(self._server, settings)

    def start(self) -> None:
        self._watch.start()
        self._server.start()

    def stop(self, grace_s: float = STORE_WAIT_S) -> None:
        """Take no more requests, let those accepted finish within `grace_s`; returns when done."""
        stopped = self._server.stop(grace_s)
        self._held.end()
        stopped.wait()
        self._workers.shutdown()
        self._watch.stop()


def _bind(server: grpc.Server, settings: GrpcSettings) -> int:
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    address = f"{host}:{settings.port}"
    credentials = _credentials(settings)
    try:
        port: int = (
            server.add_secure_port(address, credentials)
            if credentials
            else server.add_insecure_port(address)
        )
    except RuntimeError:
        port = 0
    if port == 0:
        raise ConfigError(
            f"cannot listen on {address} for OTLP/gRPC: the port is taken or not ours to use;"
            " choose another with --grpc-port (0 picks a free one)"
        )
    return port


def _credentials(settings: GrpcSettings) -> grpc.ServerCredentials | None:
    certificate, key = settings.tls_certificate, settings.tls_key
    if certificate is None and key is None:
        return None
    if certificate is None or key is None:
        raise ConfigError("--tls-cert and --tls-key go together; one of them is missing")
    try:
        # gRPC finds out about a bad pair at the first handshake, and reports nothing.
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key)
        pair = (key.read_bytes(), certificate.read_bytes())
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(
            f"cannot use --tls-cert {certificate} with --tls-key {key}: {error}"
        ) from None
    return grpc.ssl_server_credentials([pair])


class _OtlpMethods(grpc.GenericRpcHandler):  # type: ignore[misc] # grpc ships no types
    """Finds the handler of a call: Export of a signal, or one that refuses.

    All are stream handlers although OTLP is unary (the wire is the same): they start before the
    message is there, so a wrong token is refused unread and a message over the limit is counted.
    """

    def __init__(
        self,
        ingest: Ingest,
        *,
        settings: GrpcSettings,
        authorise: Authorise,
        watch: StallWatch,
        held: HeldBack,
    ) -> None:
        self._held = held
        self._ingest = ingest
        self._settings = settings
        self._authorise = authorise
        self._watch = watch

    def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler:
        if details.method == HELLO:
            # No token and no data: like /healthz, it only says who listens.
            return grpc.unary_unary_rpc_method_handler(lambda _request, _context: PRODUCT.encode())
        signal = _SIGNALS.get(details.method)
        metadata = dict(details.invocation_metadata or ())
        presented = metadata.get("authorization", "")
        refusal = self._authorise(presented)
        is_guess = bool(presented) and refusal is not None and refusal.reason is _UNKNOWN

        def handle(messages: Iterator[bytes], context: grpc.ServicerContext) -> bytes:
            sender = RequestSender(_address(context.peer()), metadata.get("user-agent", ""), "grpc")
            call = _Call(self._ingest, self._settings, self._watch, signal, sender, context)
            if refusal is None:
                return call.export(messages)
            if is_guess:
                self._held.wait(sender.address, context)
            call.refuse(refusal)

        return grpc.stream_unary_rpc_method_handler(handle)


@dataclass(frozen=True, slots=True)
class _Call:
    """One call, handled on a worker thread."""

    ingest: Ingest
    settings: GrpcSettings
    watch: StallWatch
    signal: Signal | None
    sender: RequestSender
    context: grpc.ServicerContext

    def export(self, messages: Iterator[bytes]) -> bytes:
        if self.signal is None:
            self.refuse(_UNKNOWN_METHOD)
        body = self._receive(messages)
        size = len(body)
        if not self.context.is_active():
            # Its deadline passed while it waited for a worker: the sender stopped waiting.
            self.refuse(_SENDER_GONE, size_bytes=size)
        queued = submit(
            self.ingest,
            IngestRequest(
                signal=self.signal,
                encoding=Encoding.PROTOBUF,
                body=body,
                sender=self.sender,
                received_ns=time.time_ns(),
            ),
        )
        del body  # from here on the pipeline holds it, as long as it needs it
        outcome: IngestResult | ExportRefusal
        if isinstance(queued, ExportRefusal):
            outcome = queued
        else:
            wait([queued], timeout=self.settings.store_wait_s)
            outcome = outcome_of(queued) if queued.done() else STORE_TOO_SLOW
        if isinstance(outcome, ExportRefusal):
            self.refuse(outcome, size_bytes=size)
        response: bytes = export_response(self.signal, outcome).SerializeToString()
        return response

    def _receive(self, messages: Iterator[bytes]) -> bytes:
        waiting = self.watch.begin(
            self.context.cancel,
            sender=self.sender.address,
            within_s=self.settings.store_wait_s,
        )
        if waiting is None:
            self.refuse(_NO_ROOM)
        body: bytes | None = None
        try:
            body = next(messages, None)
        except grpc.RpcError:  # the call is over already; this only updates the ledger
            self._report(_SENDER_STALLED if waiting.is_cut else _NO_MESSAGE, size_bytes=0)
            raise
        finally:
            self.watch.end(waiting, size_bytes=len(body or b""))
        if body is None:
            self.refuse(_SENDER_STALLED if waiting.is_cut else _NO_MESSAGE)
        return body

    def refuse(self, refusal: ExportRefusal, *, size_bytes: int = 0) -> NoReturn:
        """End the call with a status, its details and, where it may be retried, the delay."""
        self._report(refusal, size_bytes=size_bytes)
        short = replace(refusal, message=capped(refusal.message, _MAX_DETAIL_BYTES))
        trailers = [("grpc-status-details-bin", status_message(short).SerializeToString())]
        if short.retry_after_s is not None:
            # Where the Python exporter looks; others read the details.
            delay = retry_info(short.retry_after_s)
            trailers.append(("google.rpc.retryinfo-bin", delay.SerializeToString()))
        self.context.set_trailing_metadata(trailers)
        self.context.abort(_CODES[short.reason.grpc], short.message)
        raise AssertionError("abort() raises")

    def _report(self, refusal: ExportRefusal, *, size_bytes: int) -> None:
        report(self.ingest, refusal, signal=self.signal, sender=self.sender, size_bytes=size_bytes)


def _address(peer: str) -> str:
    """gRPC writes "ipv4:127.0.0.1:53122" and "ipv6:%5B::1%5D:53122"."""
    family, _, address = unquote(peer).partition(":")
    return address if family in ("ipv4", "ipv6") else family
