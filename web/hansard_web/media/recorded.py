"""Media inside of recorded values: base64, data URLs and bytes, taken out and named."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final
from urllib.parse import unquote_to_bytes

from hansard_compiler.calls import (
    MediaPart,
    OtherPart,
    Part,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from hansard_web.media.types import HEAD_BYTES, MediaKind, kind_of, sniffed
from hansard_web.ui.format import file_size
from hansard_web.ui.json_tree import parsed

MOST_BYTES: Final = 64 * 1024 * 1024
MOST_FOUND: Final = 200  # in one part or value
_MOST_NODES = 50_000
_DEEPEST = 40
_LEAST_CHARS = 64  # shorter base64 stays where it stands
_URL = re.compile(
    r"data:([\w.+-]{1,60}/[\w.+-]{1,80})?((?:;[^;,\s\"'<>]{0,100}){0,8}?);base64,"
    r"([A-Za-z0-9+/_=%-]*)",
    re.ASCII | re.IGNORECASE,
)
_PERCENT_URL = re.compile(
    r"data:([\w.+-]{1,60}/[\w.+-]{1,80})((?:;[^;,\s]{0,100}){0,8}?),(.*)", re.S
)
_BASE64 = re.compile(r"[A-Za-z0-9+/_=\s-]+", re.ASCII)
_TYPE_KEYS = (
    "mime_type", "media_type", "mimeType", "mediaType", "contentType", "content_type", "format",
)  # fmt: skip
_DATA_KEYS = frozenset({"data", "bytes", "base64", "b64_json", "file_data", "content", "blob"})


@dataclass(frozen=True)
class Recorded:
    """Bytes as they were recorded: encoded, or raw."""

    declared: str | None
    encoded: str | bytes
    is_percent: bool = False

    @cached_property
    def data(self) -> bytes:
        """The bytes; of base64 that was cut, as many as it holds."""
        if isinstance(self.encoded, bytes):
            return self.encoded[:MOST_BYTES]
        if self.is_percent:
            return unquote_to_bytes(self.encoded[: 3 * MOST_BYTES])[:MOST_BYTES]
        return decoded(self.encoded[: MOST_BYTES // 3 * 4])

    @cached_property
    def kind(self) -> MediaKind:
        return kind_of(self.data[:HEAD_BYTES], self.declared, len(self.data))

    @cached_property
    def digest(self) -> str:
        return hashlib.sha256(self.data).hexdigest()

    @property
    def placeholder(self) -> str:
        """What stands in texts in the place of the bytes."""
        named = self.declared or self.kind.media_type
        return f"[{named}, {file_size(len(self.data))}, sha256:{self.digest[:12]}…]"


def decoded(text: str) -> bytes:
    """Decode base64 of either alphabet, padded or not; what is cut or broken ends it."""
    plain = text.replace("%2B", "+").replace("%2F", "/").replace("%3D", "=")
    plain = "".join(plain.split()).replace("-", "+").replace("_", "/").rstrip("=")
    plain = plain[: len(plain) - 1] if len(plain) % 4 == 1 else plain
    try:
        return base64.b64decode(plain + "=" * (-len(plain) % 4))
    except (binascii.Error, ValueError):
        return b""


def media_in_part(part: Part) -> tuple[Any, list[Recorded]]:
    """Return the value of a part with placeholders, and the media that was taken out of it."""
    match part:
        case MediaPart():
            found = _of_media(part)
            return None, [found] if found else []
        case TextPart() | ReasoningPart():
            return media_in(part.text)
        case ToolCallPart():
            return media_in(parsed(part.arguments))
        case ToolResultPart():
            return media_in(parsed(part.content))
        case OtherPart():
            return media_in(parsed(part.value))


def _of_media(part: MediaPart) -> Recorded | None:
    if part.data:
        return _of_url(part.data, part.media_type) or Recorded(part.media_type, part.data)
    return _of_url(part.uri, part.media_type) if part.uri else None


def _of_url(text: str, declared: str | None) -> Recorded | None:
    """Read a data URL; the type inside of it counts before the one beside it."""
    if text[:5].lower() != "data:":
        return None
    found = _URL.match(text)
    if found:
        return Recorded(found[1] or declared, found[3])
    percent = _PERCENT_URL.match(text)
    return Recorded(percent[1], percent[3], is_percent=True) if percent else None


def media_in(value: Any) -> tuple[Any, list[Recorded]]:
    """Return a value with placeholders, and the media that was taken out, in order."""
    walk = _Walk()
    return walk.value(value, None, depth=0, is_data=False), walk.found


class _Walk:
    def __init__(self) -> None:
        self.found: list[Recorded] = []
        self._left = _MOST_NODES

    def value(self, value: Any, declared: str | None, *, depth: int, is_data: bool) -> Any:
        self._left -= 1
        if self._left < 0 or depth > _DEEPEST:
            return value
        if isinstance(value, str):
            return self._text(value, declared, is_data=is_data)
        if isinstance(value, bytes | bytearray):
            return self._add(Recorded(declared, bytes(value))) if len(value) > 48 else value
        if isinstance(value, Mapping):
            sent = next((value[key] for key in _TYPE_KEYS if key in value), None)
            own = sent if isinstance(sent, str) and len(sent) <= 100 else declared
            return {
                key: self.value(one, own, depth=depth + 1, is_data=key in _DATA_KEYS)
                for key, one in value.items()
            }
        if isinstance(value, list | tuple):
            return [self.value(one, declared, depth=depth + 1, is_data=is_data) for one in value]
        return value

    def _text(self, text: str, declared: str | None, *, is_data: bool) -> str:
        if len(text) < _LEAST_CHARS:
            return text
        if ";base64," in text:
            return _URL.sub(lambda match: self._of_match(match, declared), text)
        is_media = _is_known(text) or (is_data and declared)
        if is_media and len(self.found) < MOST_FOUND and _BASE64.fullmatch(text):
            return self._add(Recorded(declared, text))
        return text

    def _of_match(self, match: re.Match[str], declared: str | None) -> str:
        return self._add(Recorded(match[1] or declared, match[3]))

    def _add(self, found: Recorded) -> str:
        if len(self.found) < MOST_FOUND:
            self.found.append(found)
        return found.placeholder


def _is_known(text: str) -> bool:
    """Whether a text begins as the base64 of an image, a sound or a PDF does.

    Two bytes of an MPEG frame are too few to know one by.
    """
    if not _BASE64.fullmatch(text, 0, _LEAST_CHARS):
        return False
    head = decoded(text[:_LEAST_CHARS])
    return (sniffed(head) is not None and head[0] != 0xFF) or head[:3] == b"\xff\xd8\xff"
