"""Files of the store as answers."""

from __future__ import annotations

import re
from typing import Final

from starlette.responses import FileResponse
from starlette.types import Receive, Scope, Send

_RANGE: Final = re.compile(rb"bytes=(?:([0-9]{1,18})-([0-9]{0,18})|-[0-9]{1,18})")


class StoredFile(FileResponse):
    """A file, whole or one range of it; a Range header of another form is passed over."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = [one for one in scope["headers"] if one[0] != b"range" or _is_range(one[1])]
        await super().__call__({**scope, "headers": headers}, receive, send)


def _is_range(text: bytes) -> bool:
    found = _RANGE.fullmatch(text)
    return found is not None and not (found[2] and int(found[2]) < int(found[1]))
