"""Reading the store from a command: no server is needed, and none is disturbed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Protocol, TypeVar

import apsw

from hansard_compiler.errors import HansardError
from hansard_compiler.retention_modes import RetentionMode
from hansard_store.database.connections import open_for_maintenance
from hansard_store.database.data_folder import DataFolder
from hansard_store.database.readers import open_reader
from hansard_store.database.transactions import latest_version, schema_version
from hansard_store.errors import StoreError, StoreNewerError
from hansard_web.app.config import data_folder
from hansard_web.app.readers import Readers
from hansard_web.cli.base import read_config


class NoStoreError(HansardError):
    """The data folder holds no database that this version reads."""

    code = "store_not_found"


def find_store(data: str | None) -> DataFolder:
    """Return the data folder of a store that is there; raises NoStoreError."""
    folder = DataFolder(data_folder(data, os.environ))
    if not folder.has_store:
        raise NoStoreError(
            f"no store in {folder.path}: start `hansard serve`, or name its folder with --data"
        )
    return folder


@contextmanager
def reading(data: str | None) -> Iterator[apsw.Connection]:
    """Open the store read-only for the block."""
    with closing(open_store(find_store(data))) as connection:
        yield connection


@contextmanager
def lent_readers(data: str | None) -> Iterator[Readers]:
    """Open readers of a store for the block: for what reads with several connections."""
    with closing(Readers(use_store(data))) as readers:
        yield readers


def use_store(data: str | None) -> DataFolder:
    """Return the data folder of a store that this version reads; raises as `open_store` does."""
    folder = find_store(data)
    open_store(folder).close()
    return folder


def open_store(folder: DataFolder) -> apsw.Connection:
    """Open a store that is there; raises StoreError, StoreNewerError or NoStoreError."""
    known = latest_version()
    try:
        connection = open_reader(folder)
    except apsw.NotADBError:
        raise StoreError(f"{folder.database} is no SQLite database") from None
    found = schema_version(connection)
    if found == known:
        return connection
    connection.close()
    if found > known:
        raise StoreNewerError(found, known)
    raise NoStoreError(
        f"{folder.database} has schema {found}, this version reads {known}; "
        "`hansard serve` on that folder brings it up to date"
    )


@contextmanager
def maintaining(folder: DataFolder, *, secure: bool = False) -> Iterator[apsw.Connection]:
    """Open the store for deletion and gc; `secure` overwrites what is deleted."""
    open_store(folder).close()  # of this version, or refused
    with closing(open_for_maintenance(folder, secure=secure)) as connection:
        yield connection


# The store's services that commands write with, memory and annotations, opened alike.


class Service(Protocol):
    def close(self) -> None: ...


_S = TypeVar("_S", bound=Service)


@contextmanager
def opened_service(
    make: Callable[..., _S], data: str | None, retention: str | None = None
) -> Iterator[_S]:
    """Open a service of the store for the block, under the retention mode that is in force.

    Raises NoStoreError, StoreError or StoreNewerError.
    """
    folder = use_store(data)
    config = read_config(data=data, retention=retention)
    with closing(make(folder, RetentionMode(config.retention), origin="cli")) as service:
        yield service
