"""The script of the scripted model, from a file that a setting names."""

from __future__ import annotations

from pathlib import Path

import orjson

from hansard_compiler.calls import Json
from hansard_compiler.errors import ConfigError
from hansard_compiler.providers.scripted import read_script


def script_in(path: Path | None) -> Json | None:
    """Return the script of a file, None without one. Raises ConfigError for what is none."""
    if path is None:
        return None
    try:
        text = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"script {path}: {error.strerror or error}") from None
    try:
        read_script(text)
    except ConfigError as error:
        raise ConfigError(f"script {path}: {error}") from None
    found: Json = orjson.loads(text)
    return found
