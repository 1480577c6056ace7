"""CORS for browser exporters: only origins named on the command line, and none by default."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

_METHODS = "POST, OPTIONS"
_HEADERS = "content-type, content-encoding, authorization, x-requested-with"
_MAX_AGE_S = 7200
_HEADER_LIST = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~, -]+")  # RFC 9110 §5.6.2: tokens


def cors_headers(request_headers: Mapping[str, str], origins: Collection[str]) -> dict[str, str]:
    """Headers for every answer, errors included: without them a browser hides the status.

    Nothing when no origin is allowed at all. Otherwise Vary, so that no cache gives one origin's
    answer to another, and Allow-Origin for the origins in the list.
    """
    if not origins:
        return {}
    origin = request_headers.get("origin", "")
    if origin not in origins:
        return {"vary": "Origin"}
    return {
        "vary": "Origin",
        "access-control-allow-origin": origin,
        "access-control-expose-headers": "retry-after",
    }


def preflight_headers(
    request_headers: Mapping[str, str], origins: Collection[str]
) -> dict[str, str] | None:
    """Headers of the answer to a preflight request, or None if this is none we may grant."""
    is_preflight = "access-control-request-method" in request_headers
    if not is_preflight or request_headers.get("origin", "") not in origins:
        return None
    # The user of an allowed origin may configure any headers in its exporter.
    asked = request_headers.get("access-control-request-headers", "")
    granted = f"{_HEADERS}, {asked}" if _HEADER_LIST.fullmatch(asked) else _HEADERS
    headers = cors_headers(request_headers, origins) | {
        "access-control-allow-methods": _METHODS,
        "access-control-allow-headers": granted,
        "access-control-max-age": str(_MAX_AGE_S),
    }
    if request_headers.get("access-control-request-private-network") == "true":
        # Asked by Chrome when a page from a wider network reaches for this machine.
        headers["access-control-allow-private-network"] = "true"
    return headers
