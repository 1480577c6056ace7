"""Pages and the API before ingest: whoever answers a person asks the pipeline to step aside."""

from __future__ import annotations

from collections.abc import Callable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hansard_collector.pipeline.backpressure import Courtesy

_ENDLESS = "/live/"  # streams wait for news, not for the processor


class PeopleFirst:
    """The middleware; OTLP requests and streams go through as they are."""

    def __init__(
        self, app: ASGIApp, *, courtesy: Courtesy, is_otlp: Callable[[str, str], bool]
    ) -> None:
        self._app = app
        self._courtesy = courtesy
        self._is_otlp = is_otlp

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or self._is_somebody_else(scope):
            await self._app(scope, receive, send)
            return
        waiting = True
        self._courtesy.ask()

        async def send_on(message: Message) -> None:
            nonlocal waiting
            # A download is long; its reader waits for the network from its first bytes on.
            if waiting and message["type"] == "http.response.body":
                waiting = False
                self._courtesy.release()
            await send(message)

        try:
            await self._app(scope, receive, send_on)
        finally:
            if waiting:
                self._courtesy.release()

    def _is_somebody_else(self, scope: Scope) -> bool:
        path = scope["path"]
        return path.startswith(_ENDLESS) or self._is_otlp(path, scope["method"])
