"""The store's books that commands write into, memory and annotations, opened alike."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Literal, Protocol, TypeVar

from hansard_compiler.retention import RetentionMode
from hansard_store.database.data_folder import DataFolder
from hansard_web.cli.base import read_config
from hansard_web.cli.store import find_store, open_store


class Book(Protocol):
    def close(self) -> None: ...


B_co = TypeVar("B_co", bound=Book, covariant=True)


class MakeBook(Protocol[B_co]):
    def __call__(
        self, folder: DataFolder, mode: RetentionMode, /, *, origin: Literal["cli"]
    ) -> B_co: ...


@contextmanager
def opened_book(
    make: MakeBook[B_co], data: str | None, retention: str | None = None
) -> Iterator[B_co]:
    """Open a book of the store for the block, under the retention mode that is in force.

    Raises NoStoreError, StoreError or StoreNewerError.
    """
    folder = find_store(data)
    open_store(folder).close()  # of this version, or refused
    config = read_config(data=data, retention=retention)
    with closing(make(folder, RetentionMode(config.retention), origin="cli")) as book:
        yield book
