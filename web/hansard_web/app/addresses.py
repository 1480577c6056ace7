"""Addresses of this site, as requests name them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import quote, urlencode

# A path of this site: "//host" and "/\host" would lead elsewhere.
_OWN_ADDRESS = re.compile(r"/(?![/\\])[^\x00-\x1f\x7f\\]*")


def way_back(address: str) -> str:
    """Return the address if it is one of this site, else the runs list."""
    return address if _OWN_ADDRESS.fullmatch(address) else "/"


def address(path: str, query: Mapping[str, str]) -> str:
    """Return a path with its query, from which what is empty is left out."""
    text = urlencode({name: value for name, value in query.items() if value}, safe=":")
    return f"{path}?{text}" if text else path


def conversation_href(conversation_id: str, **query: str) -> str:
    """Return the address of a conversation; ids are anyone's text, slashes and dots included."""
    return address("/conversations", {"id": conversation_id, **query})


def user_href(user_id: str, **query: str) -> str:
    """Return the address of a user's page; ids are anyone's text.

    Browsers resolve `.` and `..`, and some servers decode `%2F` on the way: such ids stand in the
    query.
    """
    if "/" in user_id or "\\" in user_id or not user_id.strip(".") or not user_id.isprintable():
        return address("/users", {"id": user_id, **query})
    return address(f"/users/{quote(user_id, safe='@')}", query)
