"""HEAD wherever there is GET: the same answer without its body, as RFC 9110 §9.3.2 asks."""

from __future__ import annotations

from starlette.types import ASGIApp, Message, Receive, Scope, Send

_NO_HEAD = ("/live/", "/signin/link/")  # endless streams, and what a GET uses up


class AnswerHead:
    """The middleware; outermost, so that everything inside sees a GET."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_head = scope["type"] == "http" and scope["method"] == "HEAD"
        if not is_head or scope["path"].startswith(_NO_HEAD):
            await self._app(scope, receive, send)
            return

        async def send_head(message: Message) -> None:
            if message["type"] == "http.response.body":
                message = {**message, "body": b""}
            await send(message)

        # A copy: the server looks at its own to know that no body may follow.
        await self._app({**scope, "method": "GET"}, receive, send_head)
