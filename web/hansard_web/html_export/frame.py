"""The frame of a saved file: styles inside, and a policy that lets nothing else in."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from markupsafe import Markup

from hansard_web.ui.assets import package_assets
from hansard_web.ui.render import Renderer, make_environment

_STYLES: Final = ("hansard", "app", "run", "context", "diff")
_STYLE: Final = Markup("<style>{}</style>")
MEDIA_TYPE: Final = "text/html; charset=utf-8"


@dataclass(frozen=True, slots=True)
class SavedPage:
    """What the frame shows around a view."""

    title: str
    view: Any
    made_ns: int  # when it was saved
    style: Markup
    policy: str


@dataclass(frozen=True, slots=True)
class SavedFile:
    """A file to be kept or sent."""

    name: str
    body: bytes


def saved_file(name: str, template: str, title: str, view: Any, *, now_ns: int) -> SavedFile:
    """Render a view into one file that opens offline."""
    css = _css()
    digest = base64.b64encode(hashlib.sha256(css.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    page = SavedPage(title, view, now_ns, _STYLE.format(Markup(css)), policy)
    renderer = Renderer(make_environment(package_assets()))
    text = renderer.text(template, page=page, now_ns=now_ns)
    return SavedFile(name, text.encode("utf-8", "replace"))


@cache
def _css() -> str:
    """Return all stylesheets; none of them names another file."""
    assets = package_assets()
    found = (assets.find(f"css/{name}.css") for name in _STYLES)
    return "\n".join(one.body.decode() for one in found if one is not None)
