"""Writes `docs/api/` anew: `make reference`."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hansard_web.app import create_app
from hansard_web.settings import WebSettings
from tests.docs.api_reference import Reference, reference_of
from tests.store.empty import empty_store

FOLDER = Path(__file__).parents[2] / "docs" / "api"


def make_reference() -> Reference:
    """Return the reference of the application as it is."""
    with tempfile.TemporaryDirectory() as name:
        app = create_app(empty_store(Path(name)), None, WebSettings())
        try:
            return reference_of(app)
        finally:
            app.state.site.close()


def write() -> None:
    """Write every page, and take away those that are none any more."""
    pages = make_reference().pages()
    FOLDER.mkdir(exist_ok=True)
    for path in FOLDER.glob("*.md"):
        if path.name not in pages:
            path.unlink()
    for name, text in pages.items():
        (FOLDER / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write()
