"""What every state-changing form shares: its token, and the way back."""

from __future__ import annotations

import re
from http import HTTPStatus
from typing import Annotated

from fastapi import Depends, Form
from starlette.exceptions import HTTPException
from starlette.requests import Request

from hansard_web.site import SiteDep

# A path of this site: "//host" and "/\host" would lead elsewhere.
_OWN_ADDRESS = re.compile(r"/(?![/\\])[^\x00-\x1f\x7f\\]*")


async def own_form(request: Request, site: SiteDep, csrf: Annotated[str, Form()] = "") -> None:
    """Let only forms pass that this site gave to this browser."""
    if not site.sessions.is_form_token(csrf, request.state.session):
        raise HTTPException(
            HTTPStatus.FORBIDDEN, "this form is not of this page any more; go back and try again"
        )


OwnForm = Depends(own_form)


def way_back(address: str) -> str:
    """Return the address if it is one of this site, else the runs list."""
    return address if _OWN_ADDRESS.fullmatch(address) else "/"
