"""What bytes are: the declared type counts only where the first bytes agree with it."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

HEAD_BYTES: Final = 64 * 1024  # enough for the magic, and the size of nearly all images
MOST_PIXELS: Final = 40_000_000  # a browser takes 4 bytes for each, however small the file is
MOST_SHOWN_BYTES: Final = 8 * 1024 * 1024  # larger ones are offered for download
UNKNOWN: Final = "application/octet-stream"
View = Literal["image", "audio", "file"]

_MAGIC: Final[tuple[tuple[bytes, int, str], ...]] = (
    (b"\x89PNG\r\n\x1a\n", 0, "image/png"),
    (b"\xff\xd8\xff", 0, "image/jpeg"),
    (b"GIF87a", 0, "image/gif"),
    (b"GIF89a", 0, "image/gif"),
    (b"ftypavif", 4, "image/avif"),
    (b"ftypavis", 4, "image/avif"),
    (b"ID3", 0, "audio/mpeg"),
    (b"\xff\xfb", 0, "audio/mpeg"),
    (b"\xff\xf3", 0, "audio/mpeg"),
    (b"\xff\xf2", 0, "audio/mpeg"),
    (b"OggS", 0, "audio/ogg"),
    (b"fLaC", 0, "audio/flac"),
    (b"\x1aE\xdf\xa3", 0, "audio/webm"),
    (b"%PDF-", 0, "application/pdf"),
)
_RIFF: Final[Mapping[bytes, str]] = {b"WEBP": "image/webp", b"WAVE": "audio/wav"}
_SAME: Final[Mapping[str, str]] = {
    "jpg": "image/jpeg",
    "image/jpg": "image/jpeg",
    "image/pjpeg": "image/jpeg",
    "image/x-png": "image/png",
    "mp3": "audio/mpeg",
    "audio/mp3": "audio/mpeg",
    "audio/mpeg3": "audio/mpeg",
    "wave": "audio/wav",
    "audio/wave": "audio/wav",
    "audio/x-wav": "audio/wav",
    "audio/vnd.wave": "audio/wav",
    "opus": "audio/ogg",
    "audio/opus": "audio/ogg",
    "audio/x-flac": "audio/flac",
    "pdf": "application/pdf",
    "application/x-pdf": "application/pdf",
}
_SHORT: Final[Mapping[str, str]] = {
    **{one: f"image/{one}" for one in ("png", "jpeg", "gif", "webp", "avif")},
    **{one: f"audio/{one}" for one in ("wav", "ogg", "flac", "webm")},
}
# Declarations that name no type: a part of the kind `image`, or nothing at all.
_GENERIC: Final[Mapping[str, str]] = {
    "": "",
    UNKNOWN: "",
    "binary/octet-stream": "",
    "file": "",
    "media": "",
    "document": "",
    "image": "image/",
    "image/*": "image/",
    "audio": "audio/",
    "audio/*": "audio/",
}
_EXTENSIONS: Final[Mapping[str, str]] = {
    "image/png": "png",
    "image/jpeg": "jpg",
    "image/gif": "gif",
    "image/webp": "webp",
    "image/avif": "avif",
    "audio/mpeg": "mp3",
    "audio/wav": "wav",
    "audio/ogg": "ogg",
    "audio/flac": "flac",
    "audio/webm": "webm",
    "application/pdf": "pdf",
}


@dataclass(frozen=True, slots=True)
class MediaKind:
    """How media is served and shown; `why` says why it is no picture or sound in the page."""

    media_type: str
    view: View
    extension: str = "bin"
    pixels: tuple[int, int] | None = None
    why: str = ""


def kind_of(head: bytes, declared: str | None, size: int) -> MediaKind:
    """Return how bytes may be shown, from the first of them and their declared type."""
    found = sniffed(head)
    said = (declared or "").partition(";")[0].strip().lower()[:100]
    said = _SAME.get(said) or _SHORT.get(said) or said
    if found is None or not _agree(said, found):
        why = f"declared as {said}, but its bytes are {found}" if found and said else ""
        return MediaKind(UNKNOWN, "file", why=why)
    pixels = pixels_of(head, found)
    view: View = "file"
    why = ""
    if size > MOST_SHOWN_BYTES:
        why = "too large to be shown in the page"
    elif pixels is not None and pixels[0] * pixels[1] > MOST_PIXELS:
        why = f"{pixels[0]:,} × {pixels[1]:,} pixels are too many to be shown in the page"
    elif found.startswith("image/"):
        view = "image"
    elif found.startswith("audio/"):
        view = "audio"
    return MediaKind(found, view, _EXTENSIONS[found], pixels, why)


def _agree(said: str, found: str) -> bool:
    return said == found or (said in _GENERIC and found.startswith(_GENERIC[said]))


def sniffed(head: bytes) -> str | None:
    """Return the type that the first bytes show, None for all that is not in the list."""
    if head[:4] == b"RIFF":
        return _RIFF.get(head[8:12])
    for magic, at, media_type in _MAGIC:
        if head[at : at + len(magic)] == magic:
            return media_type
    return None


def pixels_of(head: bytes, media_type: str) -> tuple[int, int] | None:
    """Return the width and height that an image claims, None where its head does not say."""
    try:
        match media_type:
            case "image/png":
                return struct.unpack(">II", head[16:24])
            case "image/gif":
                return struct.unpack("<HH", head[6:10])
            case "image/jpeg":
                return _jpeg_pixels(head)
            case "image/webp":
                return _webp_pixels(head)
            case "image/avif":
                at = head.find(b"ispe")
                return struct.unpack(">II", head[at + 8 : at + 16]) if at >= 0 else None
    except (struct.error, IndexError):
        pass
    return None


def _jpeg_pixels(head: bytes) -> tuple[int, int] | None:
    at = 2
    while at + 9 < len(head) and head[at] == 0xFF:
        marker = head[at + 1]
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack(">HH", head[at + 5 : at + 9])
            return width, height
        at += 2 + int(struct.unpack(">H", head[at + 2 : at + 4])[0])
    return None


def _webp_pixels(head: bytes) -> tuple[int, int] | None:
    kind = head[12:16]
    if kind == b"VP8X":
        width = int.from_bytes(head[24:27], "little") + 1
        return width, int.from_bytes(head[27:30], "little") + 1
    if kind == b"VP8L":
        bits = int.from_bytes(head[21:25], "little")
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if kind == b"VP8 ":
        width, height = struct.unpack("<HH", head[26:30])
        return width & 0x3FFF, height & 0x3FFF
    return None
