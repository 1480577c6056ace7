"""Addresses of this site, as requests name them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import urlencode

# A path of this site: "//host" and "/\host" would lead elsewhere.
_OWN_ADDRESS = re.compile(r"/(?![/\\])[^\x00-\x1f\x7f\\]*")


def way_back(address: str) -> str:
    """Return the address if it is one of this site, else the runs list."""
    return address if _OWN_ADDRESS.fullmatch(address) else "/"


def address(path: str, query: Mapping[str, str]) -> str:
    """Return a path with its query, from which what is empty is left out."""
    text = urlencode({name: value for name, value in query.items() if value})
    return f"{path}?{text}" if text else path
