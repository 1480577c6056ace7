"""What every state-changing form shares: its token, its bounds, and the way back."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated, Final

from fastapi import Depends, Form
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import Message, Receive

from hansard_web.app.site import SiteDep

MAX_BYTES: Final = 8 * 1024 * 1024  # a megabyte of arguments, every character of it escaped
MAX_OPEN_BYTES: Final = 64 * 1024  # of a form that nobody needs a token for
_KINDS: Final = ("application/x-www-form-urlencoded", "multipart/form-data")


async def own_form(request: Request, site: SiteDep, csrf: Annotated[str, Form()] = "") -> None:
    """Let only forms pass that this site gave to this browser."""
    if not site.form_tokens.is_of(csrf, request.state.session):
        raise HTTPException(
            HTTPStatus.FORBIDDEN, "this form is not of this page any more; go back and try again"
        )


OwnForm = Depends(own_form)


def is_form(content_type: str) -> bool:
    return content_type.partition(";")[0].strip().lower() in _KINDS


def bounded(receive: Receive, most_bytes: int) -> Receive:
    """Return a receive that ends a form that is too long: parsers keep all, in memory or on disk.

    Raises HTTPException (413) from within the route.
    """
    left_bytes = most_bytes

    async def receive_bounded() -> Message:
        nonlocal left_bytes
        message = await receive()
        left_bytes -= len(message.get("body", b""))
        if left_bytes < 0:
            raise HTTPException(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "this form is too long")
        return message

    return receive_bounded
