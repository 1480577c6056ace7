"""The demo's side of the server's API: the person who approves, and the lookups."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from typing import Any, Final

from hansard_web.app.server_file import Endpoints
from hansard_web.demo.story import DemoFailed

_LONGEST_S: Final = 30.0


class Api:
    """The JSON API, as any program would use it."""

    def __init__(self, endpoints: Endpoints, *, token: str = "") -> None:
        self._base = endpoints.http
        self._headers = {"authorization": f"Bearer {token}"} if token else {}
        # A proxy of this machine has no part in this.
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def get(self, path: str, **query: Any) -> dict[str, Any]:
        """Return the answer to a GET. Raises DemoFailed."""
        parameters = {name: value for name, value in query.items() if value is not None}
        return self._ask(
            f"{path}?{urllib.parse.urlencode(parameters)}" if parameters else path, None
        )

    def post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer to a POST of JSON. Raises DemoFailed."""
        return self._ask(path, json.dumps(body).encode())

    def _ask(self, path: str, body: bytes | None) -> dict[str, Any]:
        headers = dict(self._headers)
        if body is not None:
            headers["content-type"] = "application/json"
        request = urllib.request.Request(self._base + path, data=body, headers=headers)
        try:
            with self._opener.open(request, timeout=_LONGEST_S) as response:
                reply: dict[str, Any] = json.load(response)
                return reply
        except urllib.error.HTTPError as error:
            raise DemoFailed(f"{path}: {error.code} {error.read()[:500].decode()}") from None
        except OSError as error:
            raise DemoFailed(f"{path}: {error}") from None

    def until(self, path: str, *, is_there: Any, **query: Any) -> dict[str, Any]:
        """Ask until the answer is as expected: what was just sent is stored within a moment."""
        deadline_s = time.monotonic() + _LONGEST_S
        while not is_there(body := self.get(path, **query)):
            if time.monotonic() > deadline_s:
                raise DemoFailed(f"{path} did not come to be as expected")
            time.sleep(0.05)
        return body
