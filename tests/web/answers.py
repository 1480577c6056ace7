"""Whether a body is what the API says of it."""

from __future__ import annotations

from typing import Any

from pydantic import TypeAdapter


def check_fits(kind: Any, body: Any) -> None:
    """Raise ValidationError unless a body has the fields of its declaration, and no other."""
    TypeAdapter(kind).validate_python(body)
