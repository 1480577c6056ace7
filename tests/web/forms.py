"""What a test needs to send a page's form."""

from __future__ import annotations

import re


def form_token(text: str) -> str:
    """Return the token that the forms of a page carry."""
    found = re.search(r'name="csrf" value="([^"]+)"', text)
    assert found
    return found[1]
