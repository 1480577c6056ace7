"""Doors on real sockets, before a pipeline that keeps what it commits in memory."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest
import uvicorn
from starlette.applications import Starlette

from hansard_collector.receivers.grpc import GrpcReceiver, GrpcSettings, allow_all, unlimited
from hansard_collector.receivers.http import HttpSettings, otlp_routes
from tests.collector.receivers.maker import HttpDoor, MemoryPipeline, OpenGrpc, OpenHttp


@contextmanager
def serving_http(pipeline: MemoryPipeline, settings: HttpSettings) -> Iterator[HttpDoor]:
    app = Starlette(routes=otlp_routes(pipeline, settings))
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, lifespan="off", ws="none"))
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        yield HttpDoor(listening.getsockname()[1], pipeline)
        pipeline.may_commit.set()
        server.should_exit = True
        thread.join()


@pytest.fixture(scope="module")
def shared_pipeline() -> Iterator[MemoryPipeline]:
    pipeline = MemoryPipeline()
    yield pipeline
    pipeline.close()


@pytest.fixture(scope="module")
def shared_door(shared_pipeline: MemoryPipeline) -> Iterator[HttpDoor]:
    """A server takes a tenth of a second to stop, so tests of the usual settings share one."""
    with serving_http(shared_pipeline, HttpSettings()) as door:
        yield door


@pytest.fixture
def pipeline(shared_pipeline: MemoryPipeline) -> Iterator[MemoryPipeline]:
    yield shared_pipeline
    shared_pipeline.forget()


@pytest.fixture
def http_door(shared_door: HttpDoor, pipeline: MemoryPipeline) -> HttpDoor:
    return shared_door


@pytest.fixture
def open_http(pipeline: MemoryPipeline) -> Iterator[OpenHttp]:
    """Serve the OTLP routes with the settings given; every server is stopped afterwards."""
    with ExitStack() as servers:

        def open_door(**settings: Any) -> HttpDoor:
            return servers.enter_context(serving_http(pipeline, HttpSettings(**settings)))

        yield open_door


@pytest.fixture
def open_grpc(pipeline: MemoryPipeline) -> Iterator[OpenGrpc]:
    """Start gRPC receivers on free ports; every one is stopped afterwards."""
    with ExitStack() as receivers:

        def open_receiver(**settings: Any) -> GrpcReceiver:
            authorise = settings.pop("authorise", allow_all)
            limiter = settings.pop("limiter", unlimited)
            chosen = GrpcSettings(**{"port": 0} | settings)
            receiver = GrpcReceiver(pipeline, chosen, authorise=authorise, limiter=limiter)
            receivers.callback(receiver.stop)
            receiver.start()
            return receiver

        yield open_receiver
        pipeline.may_commit.set()
