"""Real media bytes, and the shapes in which libraries send them."""

from __future__ import annotations

import base64
import json
import struct
import zlib
from collections.abc import Mapping
from typing import Any


def png(width: int = 40, height: int = 30, *, claimed: tuple[int, int] | None = None) -> bytes:
    """Return a valid image; `claimed` is the size that its head states instead."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        )

    head = struct.pack(">IIBBBBB", *(claimed or (width, height)), 8, 2, 0, 0, 0)
    rows = b"".join(b"\0" + bytes((200, 80, 40)) * width for _ in range(height))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        (chunk(b"IHDR", head), chunk(b"IDAT", zlib.compress(rows)), chunk(b"IEND", b""))
    )


def wav(samples: int = 800) -> bytes:
    data = bytes(128 + (40 if at % 20 < 10 else -40) for at in range(samples))
    head = struct.pack("<4sIHHIIHH", b"fmt ", 16, 1, 1, 8000, 8000, 1, 8)
    body = b"WAVE" + head + struct.pack("<4sI", b"data", len(data)) + data
    return b"RIFF" + struct.pack("<I", len(body)) + body


PDF = (
    b"%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R/OpenAction<</S/JavaScript/JS(app.alert(1))>>>>"
    b"endobj\n2 0 obj<</Type/Pages/Kids[]/Count 0>>endobj\ntrailer<</Root 1 0 R>>\n%%EOF\n"
)
GIF = base64.b64decode("R0lGODlhAQABAIAAAP8AAAAAACH5BAAAAAAALAAAAAABAAEAAAICRAEAOw==")
SVG = b'<svg xmlns="http://www.w3.org/2000/svg"><script>document.title="ran"</script></svg>'


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def url(media_type: str, data: bytes) -> str:
    return f"data:{media_type};base64,{b64(data)}"


def message(*parts: Mapping[str, Any], role: str = "user") -> dict[str, Any]:
    return {"role": role, "parts": list(parts)}


def shapes(data: bytes) -> dict[str, Mapping[str, Any]]:
    """Return one image as the parts of several libraries."""
    return {
        "opentelemetry": {"type": "blob", "mime_type": "image/png", "content": b64(data)},
        "openai chat": {"type": "image_url", "image_url": {"url": url("image/png", data)}},
        "openai responses": {"type": "input_image", "image_url": url("image/png", data)},
        "anthropic": {
            "type": "image",
            "source": {"type": "base64", "media_type": "image/png", "data": b64(data)},
        },
        "gemini": {"inlineData": {"mimeType": "image/png", "data": b64(data)}},
        "bedrock": {"image": {"format": "png", "source": {"bytes": b64(data)}}},
        "text": {"type": "text", "content": f"see ![chart]({url('image/png', data)}) there"},
        "tool result": {
            "type": "tool_call_response",
            "id": "call_1",
            "result": json.dumps([{"type": "image", "mimeType": "image/png", "data": b64(data)}]),
        },
    }
