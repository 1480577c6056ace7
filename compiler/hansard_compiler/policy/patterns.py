"""Patterns that people write into rules: google-re2, so that time is linear in the text."""

from __future__ import annotations

from typing import Any

import re2


def compiled_pattern(text: str) -> Any:
    """Return a pattern; raises ValueError that says what is wrong with it."""
    options = re2.Options()
    options.log_errors = False  # whoever asked is told: the library would tell stderr as well
    try:
        return re2.compile(text, options=options)
    except re2.error as error:
        [why] = error.args or ("",)
        told = why.decode("utf-8", "replace") if isinstance(why, bytes) else str(why)
        raise ValueError(f"not a pattern: {told}") from None
