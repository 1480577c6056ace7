"""How tools ask the JSON API: in this process or over HTTP, with the caller's own token."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import httpx2
from starlette.types import ASGIApp

from hansard_compiler.calls import Json
from hansard_compiler.errors import HansardError

TIMEOUT_S: Final = 90.0  # a long poll takes up to 60
_UNSEEN: Final = re.compile(r"[^\x20-\x7e]")


class ApiRefused(HansardError):
    """What the API, or a tool, answered instead: code, sentence and details of the API's error."""

    def __init__(self, code: str, message: str, details: Json | None = None, status: int = 0):
        super().__init__(message)
        self.code = code
        self.details = details or {}
        self.status = status


@dataclass(frozen=True, slots=True)
class ApiClient:
    """The JSON API as one caller may use it. `secret` keys what only this server can make."""

    client: httpx2.AsyncClient
    secret: bytes
    authorization: str = ""
    agent: str = "mcp"  # what the client calls itself; nobody has checked it

    async def get(self, path: str, **query: Any) -> Json:
        """Return the body of an answer; raises Refused."""
        parameters = {name: value for name, value in query.items() if value not in (None, "", [])}
        return _body(await self._send("GET", path, params=parameters))

    async def post(self, path: str, body: Json, *, headers: Mapping[str, str] = {}) -> Json:
        """Send a body and return that of the answer; raises Refused."""
        return _body(await self._send("POST", path, json=body, headers=headers))

    async def head_of(self, path: str, *, most: int) -> httpx2.Response:
        """Return an answer with the first bytes of its content; raises Refused."""
        response = await self._send("GET", path, headers={"Range": f"bytes=0-{most - 1}"})
        if response.status_code >= 400:
            _body(response)
        return response

    def key(self, nonce: str) -> str:
        """Return a key that this server makes again for the same caller and nonce."""
        material = f"{nonce}\n{self.authorization}".encode("utf-8", "surrogateescape")
        return hmac.new(self.secret, b"mcp-proposal\n" + material, hashlib.sha256).hexdigest()

    async def _send(
        self, method: str, path: str, *, headers: Mapping[str, str] = {}, **more: Any
    ) -> httpx2.Response:
        own = {"Authorization": self.authorization} if self.authorization else {}
        try:
            return await self.client.request(method, path, headers={**own, **headers}, **more)
        except httpx2.HTTPError as error:
            message = f"the server of Hansard does not answer: {type(error).__name__}"
            raise ApiRefused("unreachable", message) from None


def app_client(app: ASGIApp) -> httpx2.AsyncClient:
    """Return a client of an app in this process."""
    transport = httpx2.ASGITransport(app=app, raise_app_exceptions=False)
    return httpx2.AsyncClient(
        transport=transport, base_url="http://localhost", timeout=TIMEOUT_S, trust_env=False
    )


def agent_name(context: Any, otherwise: str = "") -> str:
    """Return what a client calls itself, as the name of an agent."""
    parameters = getattr(context.session, "client_params", None)
    info = getattr(parameters, "client_info", None)
    name = otherwise if info is None else str(info.name)
    return f"mcp {_UNSEEN.sub('', name)[:80]}".strip()


def _body(response: httpx2.Response) -> Json:
    try:
        body = response.json()
    except ValueError:
        body = None
    if not isinstance(body, dict):
        raise ApiRefused("no_json", f"the answer has status {response.status_code} and is no JSON")
    if response.status_code < 400:
        return body
    error = body.get("error")
    error = error if isinstance(error, dict) else {}
    code, message = str(error.get("code", "error")), str(error.get("message", response.status_code))
    raise ApiRefused(code, message, error.get("details"), response.status_code)
