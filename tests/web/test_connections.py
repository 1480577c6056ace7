"""Connections whose request never begins or never ends."""

from __future__ import annotations

import asyncio

import pytest
import uvicorn
from uvicorn.server import ServerState

from hansard_web.app.connections import BoundedConnection, DescriptorWatch


class ImpatientConnection(BoundedConnection):
    head_wait_s = 0.05


async def _app(scope: object, receive: object, send: object) -> None:
    raise AssertionError("no request was ever whole")


async def read_to_end(sent: bytes) -> bytes:
    """Return what comes before the server ends the connection; b"" also for a reset."""
    config = uvicorn.Config(_app, log_config=None, lifespan="off", ws="none")
    loop = asyncio.get_running_loop()
    server = await loop.create_server(
        lambda: ImpatientConnection(config, ServerState(), {}, loop), "127.0.0.1", 0
    )
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    try:
        writer.write(sent)
        return await asyncio.wait_for(reader.read(), 20)
    except ConnectionResetError:
        return b""
    finally:
        writer.transport.abort()
        server.close()
        await server.wait_closed()


@pytest.mark.parametrize(
    "sent", [b"", b"GET / HTTP/1.1\r\nHost: loc"], ids=["nothing sent", "half a head sent"]
)
def test_who_never_ends_a_head_is_cut_off(sent: bytes) -> None:
    assert asyncio.run(read_to_end(sent)) == b""


def test_descriptors_that_are_used_up_are_logged_and_counted_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    used = 5
    watch = DescriptorWatch(lambda: used)
    watch.look()
    used = 1 << 30
    watch.look()
    watch.look()
    state = watch.state()
    used = 5
    watch.look()

    assert state is not None
    assert (state.is_used_up, state.times_used_up) == (True, 1)
    told = [record.getMessage() for record in caplog.records]
    assert ["are in use" in one for one in told] == [True, False]
    assert "free again" in told[1]


def test_descriptors_that_cannot_be_looked_at_are_used_up() -> None:
    def none_left() -> int:
        raise OSError(24, "Too many open files")

    state = DescriptorWatch(none_left).state()

    assert state is not None
    assert state.is_used_up
