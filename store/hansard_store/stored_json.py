"""JSON as it stands in a row."""

from __future__ import annotations

import json
from typing import Any


def json_of(text: str) -> Any:
    """Return what JSON says, exactly: orjson would make floats of large integers."""
    return json.loads(text)
