"""What is known of payloads that messages name: their first bytes, or why there are none."""

from __future__ import annotations

from collections.abc import Callable

import apsw

from hansard_compiler.errors import NotFoundError
from hansard_store.content.payloads import (
    folder_of,
    get_payload,
    parse_payload_ref,
    peek_payload,
)
from hansard_store.errors import InvalidQueryError, PayloadAlteredError, StoreCorruptError
from hansard_web.media.types import HEAD_BYTES, kind_of
from hansard_web.ui.messages import StoredMedia


def payload_lookup(connection: apsw.Connection) -> Callable[[str], StoredMedia | str]:
    """Return what looks up payloads of an open store, as long as a page is made."""
    folder = folder_of(connection)

    def look(ref: str) -> StoredMedia | str:
        try:
            payload = get_payload(connection, parse_payload_ref(ref))
            head = peek_payload(folder, payload, most_bytes=HEAD_BYTES)
        except (NotFoundError, InvalidQueryError):
            return "not stored: its bytes never arrived, or retention removed them"
        except PayloadAlteredError:
            return "its stored bytes were altered"
        except StoreCorruptError:
            return "its file is missing"
        kind = kind_of(head, payload.media_type, payload.size)
        return StoredMedia(kind, payload.size, payload.digest.hex(), payload.media_type)

    return look
