"""Payloads stored by themselves, without spans that name them."""

from __future__ import annotations

from collections.abc import Callable

from hansard_store.content.payloads import (
    Payload,
    Retained,
    add_payload,
    prepare_payload,
    write_file,
)
from hansard_store.database.connections import accountability_transaction
from hansard_store.database.data_folder import DataFolder


def put_payload(
    folder: DataFolder,
    data: bytes,
    *,
    expected: bytes,
    media_type: str,
    received_ns: int,
    retain: Callable[[bytes, str], Retained],
) -> Payload | None:
    """Store bytes under the digest they were sent with; None when retention keeps nothing of them.

    `retain` takes out what may not be stored, before anything is written: then the rest is stored
    under its own digest, and the one sent leads there. Raises DigestMismatchError when the bytes
    are not those of `expected`, StoreBusyError when they cannot be written now.
    """
    made = prepare_payload(
        data, expected=expected, media_type=media_type, received_ns=received_ns, retain=retain
    )
    if made is None:
        return None
    write_file(folder, made)
    with accountability_transaction(folder) as connection:
        add_payload(folder, connection, made)
    return made.payload
