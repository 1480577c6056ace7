"""Writes `docs/api/` and `docs/columns.md` anew: `make reference`."""

from __future__ import annotations

import tempfile
from pathlib import Path

import apsw

from hansard_web.app.application import create_app
from hansard_web.app.config import WebSettings
from tests.docs.api_reference import reference_of
from tests.docs.columns_reference import columns_page
from tests.store.empty import empty_store

DOCS = Path(__file__).parents[2] / "docs"
API, COLUMNS, DATA_MODEL = DOCS / "api", DOCS / "columns.md", DOCS / "data-model.md"


def write() -> None:
    """Write every page, and take away those that are none any more."""
    with tempfile.TemporaryDirectory() as name:
        folder = empty_store(Path(name))
        app = create_app(folder, None, WebSettings())
        try:
            pages = reference_of(app).pages()
        finally:
            app.state.site.close()
        connection = apsw.Connection(str(folder.database))
        columns = columns_page(connection, DATA_MODEL.read_text(encoding="utf-8"))
        connection.close()
    COLUMNS.write_text(columns, encoding="utf-8")
    API.mkdir(exist_ok=True)
    for path in API.glob("*.md"):
        if path.name not in pages:
            path.unlink()
    for page, text in pages.items():
        (API / page).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write()
