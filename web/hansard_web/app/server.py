"""The server as one process: store, pipeline and endpoints, started in order and stopped in order.

ports bound -> store migrated -> pipeline -> gRPC -> HTTP -> ready
SIGTERM     -> endpoints closed, what was accepted is finished -> pipeline drained -> checkpoint
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import errno
import gc
import logging
import os
import signal
import socket
import ssl
import stat
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import replace
from enum import Enum
from pathlib import Path
from typing import Final

import apsw
import uvicorn
from anyio import create_task_group, to_thread
from fastapi import FastAPI

from hansard_collector.background import Background
from hansard_collector.derivation.error_steps import error_step_upkeep
from hansard_collector.derivation.figures import figure_work
from hansard_collector.derivation.rebuild import rebuild_continuation
from hansard_collector.keepalives import SilenceWatch
from hansard_collector.log_sessions.hook_spool import hook_spool_watch
from hansard_collector.notifications.work import NotificationWork
from hansard_collector.pipeline.ingest_queue import Pipeline
from hansard_collector.pipeline.redaction import RetentionPolicy
from hansard_collector.pipeline.validation import ItemLimits
from hansard_collector.receivers.export_response import STORE_WAIT_S, ExportRefusal
from hansard_collector.receivers.grpc import (
    NO_TOKEN,
    NOT_FOR_SENDING,
    WRONG_TOKEN,
    Authorise,
    GrpcReceiver,
    GrpcSettings,
)
from hansard_collector.receivers.memory import give_back_free_pages, resident_bytes
from hansard_compiler.errors import ConfigError, HansardError
from hansard_compiler.redaction.redactor import Redactor
from hansard_store.approvals.service import ApprovalService
from hansard_store.audit.schedule import SealSchedule
from hansard_store.database.connections import open_for_web
from hansard_store.database.data_folder import DataFolder
from hansard_store.database.disk import keep_reserve
from hansard_store.principals.model import Scope
from hansard_store.principals.service import Principals
from hansard_web.app.application import create_app
from hansard_web.app.config import Config, WebSettings, script_in
from hansard_web.app.connections import DESCRIPTORS, BoundedConnection, allow_many_descriptors
from hansard_web.app.old_runs import Limits, janitor
from hansard_web.app.route_loading import RouteLoading
from hansard_web.app.server_file import Endpoints, announce, withdraw
from hansard_web.app.site import Site
from hansard_web.cli.base import user_name
from hansard_web.heartbeat.process import HeartbeatProcesses
from hansard_web.principals.attempts import Attempts

# How the server's process handles its memory: Python's collector of cycles, and glibc's heap.

# Objects made since the collector's last walk over the youngest. What ingest makes of 512 spans is
# some 50,000 objects and hardly a cycle: with fewer, each transaction paid for a walk that found
# nothing, 5 % of its time.
_GC_OBJECTS: Final = 200_000
# `mallopt(3)`. Requests of megabytes are copied a few times on their way, and each copy was fresh
# pages of the kernel, to be cleared and released: 4 % of ingest.
_M_TRIM_THRESHOLD: Final = -1
_M_MMAP_THRESHOLD: Final = -3
_M_ARENA_MAX: Final = -8
_KEPT_BYTES: Final = 64 * 1024 * 1024  # of freed memory at the end of the heap
_OWN_PAGES_BYTES: Final = 4 * 1024 * 1024  # larger blocks are released at once
# Each thread would get an arena of its own, whose free memory no other thread uses: there are a
# hundred threads, and Python's lock lets one of them allocate at a time anyhow.
_ARENAS: Final = 2

_log = logging.getLogger("hansard.server")
_TICK_S: Final = 1.0
_GROWTH_BYTES: Final = 32 * 1024 * 1024  # over the last low that is worth a look
_FAST_GROWTH_BYTES: Final = 192 * 1024 * 1024  # that is looked into even under load
_IDLE_SHARE: Final = 0.1  # of a processor


def bound_arenas() -> None:
    """Let threads share the heap; to be called before they are started."""
    _mallopt(_M_ARENA_MAX, _ARENAS)


def settle_heap() -> None:
    """Set both for a process that stores spans by the million; nothing where there is no glibc."""
    # What is loaded by now stays anyhow and need not be walked at all.
    gc.freeze()
    gc.set_threshold(_GC_OBJECTS, 20, 20)
    _mallopt(_M_MMAP_THRESHOLD, _OWN_PAGES_BYTES)
    _mallopt(_M_TRIM_THRESHOLD, _KEPT_BYTES)


def _mallopt(name: int, value: int) -> None:
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(name, value)


class HeapKeeper:
    """Releases memory that is free and held: after a load, and when the process grows fast.

    The collector counts objects, and a cycle of a few may hold megabytes: it would stay until
    200,000 others are made. And glibc keeps what threads freed in pieces until it is asked.
    """

    def __init__(
        self,
        *,
        resident: Callable[[], int] = resident_bytes,
        processor_s: Callable[[], float] = time.process_time,
    ) -> None:
        self._resident = resident
        self._processor_s = processor_s
        self._low_bytes = resident()
        self._high_bytes = self._low_bytes  # at the last look under load
        self._used_s = processor_s()

    def working(self) -> AbstractContextManager[None]:
        """Look once a second for as long as a block lasts; not where memory cannot be read."""
        if not self._low_bytes:
            return nullcontext()
        return Background(
            "hansard-heap",
            lambda _: self.look(),
            every_s=_TICK_S,
            first_s=_TICK_S,
            log=_log,
            put_off="memory is given back later",
        ).working()

    def look(self) -> bool:
        """Give back what can be, if there may be much of it; return whether it was tried."""
        used_s = self._processor_s()
        is_idle = used_s - self._used_s < _IDLE_SHARE * _TICK_S
        now_bytes = self._resident()
        self._low_bytes = min(self._low_bytes, now_bytes)
        self._high_bytes = min(self._high_bytes, now_bytes)
        grew_fast = now_bytes - self._high_bytes > _FAST_GROWTH_BYTES
        is_due = grew_fast or (is_idle and now_bytes - self._low_bytes > _GROWTH_BYTES)
        if is_due:
            # All generations only when nobody waits: that walks over every cache.
            gc.collect(2 if is_idle else 1)
            give_back_free_pages()
            self._high_bytes = self._resident()
            if is_idle:
                self._low_bytes = self._high_bytes
        self._used_s = self._processor_s()
        return is_due


_BACKLOG = 2048
# Accepted requests wait at most STORE_WAIT_S for the store; uploads that last longer are cut off.
_SHUTDOWN_S = int(STORE_WAIT_S) + 1
# The pipeline gives the interpreter lock away at each call of SQLite and must wait this long to get
# it back from a thread that commits or renders: agent spans came in at 2,500/s with 2 ms, 2,950/s
# with 0.5, 3,080/s with this, and pages took no longer. Python's own is 5 ms.
_SWITCH_S = 0.0001
_WILDCARDS = {"0.0.0.0": "127.0.0.1", "::": "::1"}


class Half(Enum):
    """Which endpoints a process opens."""

    BOTH = "serve"
    COLLECTOR = "collector"
    WEB = "web"


class HttpServer(uvicorn.Server):
    """uvicorn, started and stopped by its owner, with pages that follow live streams for ever."""

    def __init__(
        self,
        app: FastAPI,
        config: Config,
        *,
        on_ready: Callable[[], None],
        on_stop: Callable[[], None],
    ) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                access_log=False,
                log_config=None,
                proxy_headers=False,  # X-Forwarded-For would let any local sender name its address
                server_header=False,
                ssl_certfile=config.tls_cert,
                ssl_keyfile=config.tls_key,
                timeout_graceful_shutdown=_SHUTDOWN_S,
                http=BoundedConnection,
                ws="none",
            )
        )
        self._app = app
        self._on_ready = on_ready
        self._on_stop = on_stop

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to the owner: uvicorn would raise them again in the end, and exit -15."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept connections, and say so."""
        await super().startup(sockets)
        self._on_ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Close the endpoints all at once and let open requests finish."""
        # uvicorn waits for open responses before it stops, and a live stream never ends by itself.
        self._app.state.site.feed.close()
        self._app.state.accounts.watch.close()
        async with create_task_group() as tasks:
            tasks.start_soon(to_thread.run_sync, self._on_stop)
            await super().shutdown(sockets)


class Server:
    """One process of Hansard: `with` binds its ports and opens its store, `run` serves."""

    def __init__(self, config: Config, *, half: Half = Half.BOTH) -> None:
        self._config = config
        self._half = half
        self._opened = ExitStack()

    def __enter__(self) -> Server:
        """Bind and open everything: what cannot work is a ConfigError or StoreError now."""
        with ExitStack() as opened:
            self._open(opened)
            self._opened = opened.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    def _open(self, opened: ExitStack) -> None:
        config = self._config
        bound_arenas()
        allow_many_descriptors()
        _check_tls(config)
        self._sockets = [opened.enter_context(_listen(config))]
        if config.socket is not None:
            self._sockets.append(opened.enter_context(_listen_unix(config.socket)))
        folder = _data_folder(config.data)
        pipeline, attempts = None, Attempts()
        self._grpc: GrpcReceiver | None = None
        if self._half is Half.WEB:
            open_for_web(folder)  # migrated before the first page reads it
        else:
            pipeline = self._open_receivers(opened, folder, attempts)
        keep_reserve(folder)
        self.endpoints = self._endpoints()
        shows = self._half is not Half.COLLECTOR
        app = create_app(
            folder,
            pipeline,
            self._web_settings(),
            shows=shows,
            attempts=attempts,
            loads="later",
        )
        site: Site = app.state.site
        opened.callback(_end_links, site)
        # Others who reach the address may read what this process prints: then it has no link.
        path = _link_of(site) if shows and config.is_local else ""
        self.endpoints = replace(self.endpoints, instance=site.instance, link=path)
        opened.enter_context(app.state.accounts.working())
        self._loading: RouteLoading | None = app.state.loading
        self._http = HttpServer(app, config, on_ready=self._print_ready, on_stop=self._stop_grpc)
        self._on_ready: Callable[[Endpoints], None] = lambda _: None

    def _open_receivers(
        self, opened: ExitStack, folder: DataFolder, attempts: Attempts
    ) -> Pipeline:
        """Start the pipeline and what stands beside it; gRPC listens, and is answered later."""
        config = self._config
        retention = RetentionPolicy(config.retention, Redactor(folder.key()))
        pipeline = Pipeline(
            folder,
            retention,
            durability=config.durability,
            limits=ItemLimits(config.max_attributes),
        )
        opened.callback(_seal_the_rest, folder, config.heads_copy)  # after the pipeline
        opened.callback(pipeline.close)
        principals = Principals(
            folder, configured=((one.secret, one.scopes) for one in config.token)
        )
        opened.callback(principals.close)
        self._grpc = GrpcReceiver(
            pipeline,
            GrpcSettings(
                host=config.host,
                port=config.grpc_port,
                tls_certificate=config.tls_cert,
                tls_key=config.tls_key,
            ),
            authorise=authorise_with(principals),
            limiter=attempts.failed,
        )
        opened.callback(self._grpc.stop)
        pipeline.start()
        pages = config.public_url or self._endpoints().http
        for beside in _background_work(config, folder, pipeline, pages=pages):
            opened.enter_context(beside)
        return pipeline

    def _endpoints(self) -> Endpoints:
        config = self._config
        scheme = "https" if config.tls_cert else "http"
        host = _WILDCARDS.get(config.host, config.host)
        grpc = _address(host, self._grpc.port) if self._grpc else None
        address = _address(host, self._sockets[0].getsockname()[1])
        return Endpoints(
            f"{scheme}://{address}", grpc, config.socket, config.data, settings=config.reported()
        )

    def _web_settings(self) -> WebSettings:
        config = self._config
        return WebSettings(
            tokens=config.token,
            allow_hosts=config.allow_host,
            bound_host=config.host,
            http_address=self.endpoints.http.partition("://")[2],
            grpc_address=self.endpoints.grpc,
            cors_origins=frozenset(config.cors_origin),
            secure_cookies=config.tls_cert is not None,
            retention=config.retention,
            durability=config.durability,
            policy=config.policy,
            model_server=config.model_server,
            script=script_in(config.script),
            mcp=config.mcp == "on",
            heads_copy=config.heads_copy,
            decide=config.decide,
            webhooks=config.notify,
            outbound=config.outbound == "on",
            recipients=config.recipients,
            report_escalation_ns=config.report_escalation,
            values=config.values(),
        )

    def run(self, *, on_ready: Callable[[Endpoints], None] = lambda _: None) -> None:
        """Serve until `stop` is called or, in the main thread, SIGTERM or SIGINT comes."""
        self._on_ready = on_ready
        sys.setswitchinterval(_SWITCH_S)
        settle_heap()
        loop_factory = self._http.config.get_loop_factory()
        with (
            HeapKeeper().working(),
            DESCRIPTORS.working(),
            self._loading.working() if self._loading else nullcontext(),
            asyncio.Runner(loop_factory=loop_factory) as runner,
        ):
            runner.run(self._serve())

    def stop(self) -> None:
        """End `run`, from any thread; a second call does not wait for open requests."""
        self._http.force_exit = self._http.should_exit
        self._http.should_exit = True

    async def _serve(self) -> None:
        if threading.current_thread() is threading.main_thread():
            loop = asyncio.get_running_loop()
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.add_signal_handler(number, self.stop)
        if self._grpc is not None:
            self._grpc.start()
        await self._http.serve(self._sockets)

    def _print_ready(self) -> None:
        if self._half is not Half.COLLECTOR:  # which has no pages to open
            announce(self.endpoints)
            self._opened.callback(withdraw, self.endpoints)
        self._on_ready(self.endpoints)

    def _stop_grpc(self) -> None:
        if self._grpc is not None:
            self._grpc.stop()


@contextmanager
def running(config: Config) -> Iterator[Server]:
    """Serve in a thread for as long as the block lasts; ready when the block begins."""
    with Server(config) as server, ThreadPoolExecutor(1) as threads:
        settled = threading.Event()
        run = threads.submit(server.run, on_ready=lambda _: settled.set())
        run.add_done_callback(lambda _: settled.set())
        settled.wait()
        try:
            if not run.done():
                yield server
        finally:
            server.stop()
            run.result()


# ---- the parts


def _background_work(
    config: Config, folder: DataFolder, pipeline: Pipeline, *, pages: str
) -> Iterator[AbstractContextManager[object]]:
    """Yield what a server that receives does beside answering, each as long as its block."""
    yield SilenceWatch(folder).working()
    yield hook_spool_watch(config.data, pipeline).working()
    yield rebuild_continuation(folder).working()
    yield figure_work(folder).working()
    yield error_step_upkeep(folder).working()
    yield janitor(folder, Limits(config.keep, config.max_disk)).working()
    yield NotificationWork(
        folder, config.notify if config.outbound == "on" else (), pages=pages
    ).working()
    if config.heartbeat is not None:
        yield HeartbeatProcesses(config, every_s=config.heartbeat / 1e9).working()


def _link_of(site: Site) -> str:
    """Return the path that signs in who started this server; empty where it cannot be stored.

    It is a link like any other: revoking the name ends it.
    """
    try:
        code = site.principals.add_link(user_name(), server=site.instance, is_once=False)
    except (HansardError, apsw.Error):  # a full disk: what is stored can still be read
        return ""
    return f"/signin/link/{code}"


def _end_links(site: Site) -> None:
    """End the links of this run of the server."""
    with contextlib.suppress(HansardError, apsw.Error):  # nobody takes them any more either way
        site.principals.end_links(site.instance)


def authorise_with(principals: Principals) -> Authorise:
    """Let gRPC calls in that carry a token which may send telemetry; all, without tokens.

    Only tokens of the configuration close the port; then named ones open it too. A wrong token is
    refused on an open port as well, as over HTTP.
    """
    is_open = not principals.configured()

    def authorise(authorization: str) -> ExportRefusal | None:
        kind, _, presented = authorization.partition(" ")
        has_token = kind.lower() == "bearer"
        if is_open:
            return WRONG_TOKEN if has_token and principals.is_wrong(presented.strip()) else None
        found = principals.authenticate(presented.strip()) if has_token else None
        if found is None:
            return NO_TOKEN
        return None if found.allows(Scope.INGEST) else NOT_FOR_SENDING

    return authorise


def _data_folder(path: Path) -> DataFolder:
    folder = DataFolder(path)
    try:
        folder.create()
    except OSError as error:
        raise ConfigError(
            f"cannot use --data {path}: {os.strerror(error.errno or 0)}; "
            "name a folder that is yours, or one that can be made"
        ) from None
    return folder


def _seal_the_rest(folder: DataFolder, heads_copy: str | None) -> None:
    with ApprovalService(folder, heads_copy=heads_copy) as approvals:
        SealSchedule(approvals.seal).end()


def _check_tls(config: Config) -> None:
    if config.tls_cert is None or config.tls_key is None:
        return
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(config.tls_cert, config.tls_key)
    except OSError as error:  # ssl.SSLError is one
        raise ConfigError(
            f"cannot use --tls-cert {config.tls_cert} with --tls-key {config.tls_key}: {error}"
        ) from None


def _address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


@contextmanager
def _listen(config: Config) -> Iterator[socket.socket]:
    """Bind the HTTP port now, so that a taken one is found before anything is started."""
    family = socket.AF_INET6 if ":" in config.host else socket.AF_INET
    try:
        listener = socket.create_server(
            (config.host, config.http_port), family=family, backlog=_BACKLOG
        )
    except OSError as error:
        address = _address(config.host, config.http_port)
        reason, advice = _why_not_bound(error)
        raise ConfigError(f"cannot listen on {address} for HTTP: {reason}; {advice}") from None
    with listener:
        yield listener


def _why_not_bound(error: OSError) -> tuple[str, str]:
    """Return what the system says, and which flag helps."""
    number = error.errno or 0
    if number < 0 or number == errno.EADDRNOTAVAIL:  # below 0 are the numbers of getaddrinfo
        return "this machine has no such address", "name another with --host"
    return os.strerror(number), "choose another with --http-port (0 picks a free one)"


@contextmanager
def _listen_unix(path: Path) -> Iterator[socket.socket]:
    """Bind a socket that only its owner may use, in place of one nobody listens on any more."""
    _clear(path)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    with listener:
        # The mode must be right from the first moment; no other thread makes files yet.
        before = os.umask(0o177)
        try:
            listener.bind(str(path))
        except OSError as error:
            raise ConfigError(f"cannot make --socket {path}: {error.strerror or error}") from None
        finally:
            os.umask(before)
        listener.listen(_BACKLOG)
        try:
            yield listener
        finally:
            with contextlib.suppress(FileNotFoundError):
                path.unlink()


def _clear(path: Path) -> None:
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise ConfigError(f"--socket {path} is there already and is no socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(str(path))
        except OSError:
            path.unlink()
        else:
            raise ConfigError(f"--socket {path} is in use by another process")
