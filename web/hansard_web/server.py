"""The HTTP server around the app: uvicorn, made to stop while pages are following live streams."""

from __future__ import annotations

import socket

import uvicorn
from fastapi import FastAPI


class HttpServer(uvicorn.Server):
    """uvicorn waits for open responses before it stops, and a live stream never ends by itself."""

    def __init__(
        self, app: FastAPI, *, tls_cert: str | None = None, tls_key: str | None = None
    ) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                access_log=False,
                log_config=None,
                proxy_headers=False,  # X-Forwarded-For would let any local sender name its address
                server_header=False,
                ssl_certfile=tls_cert,
                ssl_keyfile=tls_key,
                ws="none",
            )
        )
        self._app = app

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._app.state.site.feed.close()
        await super().shutdown(sockets)
