"""Jinja: one environment, the figures as filters, the shell that every page stands in."""

from __future__ import annotations

import shlex
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from hashlib import sha256
from importlib.util import cache_from_source
from pathlib import Path
from types import CodeType
from typing import Any, Final

import jinja2
from jinja2 import Environment, PackageLoader, StrictUndefined
from jinja2.bccache import Bucket, FileSystemBytecodeCache
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse

from hansard._config.setting import default_data_folder
from hansard_compiler.errors import ConfigError
from hansard_compiler.retention_modes import RetentionMode
from hansard_store.database.data_folder import make_private
from hansard_store.principals.model import Scope
from hansard_web.approvals.page_state import Badge, read_badge
from hansard_web.principals.dependencies import may_not_decide, must_sign_in, principal_of
from hansard_web.ui import format as figures
from hansard_web.ui.assets import package_assets
from hansard_web.ui.markdown import to_html, verbatim
from hansard_web.ui.navigation import MORE, PRIMARY, Place

# Compiled templates stored beside their sources, as Python keeps compiled modules.

_FINGERPRINT_CHARS: Final = 12


class TemplateCache(FileSystemBytecodeCache):
    """Keeps what Jinja compiled in the templates' `__pycache__`, or where PYTHONPYCACHEPREFIX says.

    Jinja compares the source's checksum before it takes a compiled template. What else decides how
    one is compiled (`made_by`: filters and options; the version of Jinja) is part of the file's
    name. Where the folder cannot be written, or PYTHONDONTWRITEBYTECODE is set, nothing is kept.
    """

    def __init__(self, templates: Path, *, made_by: Iterable[Path]) -> None:
        own = sha256(jinja2.__version__.encode())
        for path in made_by:
            own.update(path.read_bytes())
        folder = Path(cache_from_source(str(templates / "template.py"))).parent
        mark = f"{sys.implementation.cache_tag}-{own.hexdigest()[:_FINGERPRINT_CHARS]}"
        super().__init__(str(folder), f"%s.{mark}.template")

    def load_bytecode(self, bucket: Bucket) -> None:
        """Take what is stored; what cannot be read is compiled again."""
        try:
            super().load_bytecode(bucket)
        except Exception:  # a damaged file may raise any: SystemError, AttributeError …
            bucket.reset()
        if not isinstance(bucket.code, CodeType):
            bucket.reset()

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Keep a compiled template for the next process; never fails."""
        if sys.dont_write_bytecode:
            return
        with suppress(OSError):
            make_private(Path(self.directory))  # what stands in it is run
            super().dump_bytecode(bucket)


THEMES: Final = ("system", "light", "dark")
THEME_COOKIE: Final = "hansard_theme"
TIMES: Final = ("local", "utc")  # the zone in which a browser shows times; the server writes UTC
TIMES_COOKIE: Final = "hansard_times"
MESSAGES: Final = ("markdown", "plain")  # what answers of models are shown as
MESSAGES_COOKIE: Final = "hansard_messages"
_MODULE: Final = Markup('<script type="module" src="{}" integrity="{}"></script>')
_SCRIPT: Final = Markup('<script src="{}" integrity="{}"></script>')
_TEMPLATES: Final = Path(__file__).parents[1] / "templates"
_FIGURES: Final = Path(__file__).with_name("format.py")
_FILTERS: Final = (
    "agent_words", "ago", "clock", "count", "day_time", "duration", "file_size", "iso_time",
    "money", "offset", "percent", "plural", "shorten", "status_word", "tokens", "utc_time",
)  # fmt: skip
_FONT: Final = Markup('<link rel="preload" href="{}" as="font" type="font/woff2" crossorigin>')
_STYLESHEET: Final = Markup('<link rel="stylesheet" href="{}" integrity="{}">')


@dataclass(frozen=True, slots=True)
class Shell:
    """What the frame around a page needs, beside the page's own context."""

    theme: str
    here: str  # path and query of this page, to come back to
    csrf: str
    signed_in: bool
    now_ns: int
    places: tuple[Place, ...] = PRIMARY
    more: tuple[Place, ...] = MORE
    badge: Callable[[], Badge] = lambda: Badge(0)  # called by whole pages only
    may_decide: bool = True  # whether the reader's token may say something in a person's name
    may_not: str = ""  # why this reader cannot decide; "" who can
    must_sign_in: bool = False  # and it is that nobody is signed in
    principal: str = ""  # the name that decisions of this reader are stored under; "" for none
    is_open: bool = False  # anyone may decide, as the setting `decide` says
    messages: str = "markdown"  # one of MESSAGES
    times: str = "local"  # one of TIMES
    keeps_text: bool = True  # whether what a person writes is stored
    data: Path | None = None  # the folder that commands need to be given; None for the default

    def open_command(self, path: str = "/") -> str:
        """Return the command that opens a page of this server signed in, as a shell takes it."""
        folder = () if self.data is None else ("--data", str(self.data))
        page = () if path == "/" else (path,)
        return shlex.join((_command(), "open", *page, *folder))


@cache
def make_environment() -> Environment:
    """Return the environment of all templates: escaping on, a missing name is an error.

    There is one in a process, which so compiles a template once.
    """
    assets = package_assets()
    environment = Environment(
        loader=PackageLoader("hansard_web"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
        bytecode_cache=TemplateCache(_TEMPLATES, made_by=(Path(__file__), _FIGURES)),
    )
    environment.filters.update({name: getattr(figures, name) for name in _FILTERS})
    environment.filters.update(markdown=to_html, verbatim=verbatim)
    environment.globals.update(
        asset=assets.url,
        font=lambda path: _FONT.format(assets.url(path)),
        module=partial(_tag, _MODULE),
        script=partial(_tag, _SCRIPT),
        stylesheet=partial(_tag, _STYLESHEET),
    )
    return environment


def compile_templates() -> None:
    """Compile every template into the cache, for installations that nobody may write later."""
    environment = make_environment()
    for name in environment.list_templates(extensions=["html"]):
        environment.get_template(name)


def _tag(shape: Markup, path: str) -> Markup:
    assets = package_assets()
    return shape.format(assets.url(path), assets.integrity(path))


class Renderer:
    """Renders pages and fragments of one app."""

    def __init__(self) -> None:
        self._environment = make_environment()

    def page(
        self,
        request: Request,
        template: str,
        *,
        here: str,
        page: Any,
        status: int = 200,
        headers: Mapping[str, str] | None = None,
    ) -> HTMLResponse:
        """Return a whole page. `here` names its place in the navigation ("" for none)."""
        body = self._environment.get_template(template).render(
            page=page, shell=shell_of(request), here=here
        )
        return HTMLResponse(body, status_code=status, headers=dict(headers or {}))

    def fragment(
        self,
        request: Request,
        template: str,
        *,
        page: Any,
        headers: Mapping[str, str] | None = None,
    ) -> HTMLResponse:
        """Return a part of a page for htmx; no cache may store it."""
        cached = {"Cache-Control": "no-store", **(headers or {})}
        return self.page(request, template, here="", page=page, headers=cached)

    def text(self, template: str, *, page: Any, now_ns: int | None = None) -> str:
        """Return markup for a live stream, where there is no request to take a shell from."""
        shell = Shell(
            theme="system",
            here="/",
            csrf="",
            signed_in=False,
            now_ns=time.time_ns() if now_ns is None else now_ns,
        )
        return self._environment.get_template(template).render(page=page, shell=shell, here="")


@cache
def _command() -> str:
    """Return what a shell calls this program: by name where it finds it, else by its path."""
    mine = Path(sys.argv[0])
    if mine.name != "hansard" or shutil.which("hansard"):
        return "hansard"
    return str(mine.absolute())


@cache
def _folder_for_commands(folder: Path) -> Path | None:
    """Return the data folder as a command in any directory needs it; None for the default."""
    named = folder.absolute()
    try:
        return None if named == default_data_folder() else named
    except ConfigError:  # a user without a home has no default
        return named


def shell_of(request: Request) -> Shell:
    """Return the shell for a request: its theme, its address, its form token."""
    theme = request.cookies.get(THEME_COOKIE, "system")
    messages = request.cookies.get(MESSAGES_COOKIE, "")
    times = request.cookies.get(TIMES_COOKIE, "")
    query = f"?{request.url.query}" if request.url.query else ""
    principal = principal_of(request)
    site = request.app.state.site
    return Shell(
        theme=theme if theme in THEMES else "system",
        messages=messages if messages in MESSAGES else MESSAGES[0],
        times=times if times in TIMES else TIMES[0],
        here=request.url.path + query,
        csrf=getattr(request.state, "csrf", ""),
        signed_in=getattr(request.state, "signed_in", False),
        principal="" if principal is None else principal.name,
        is_open=not site.settings.needs_principal,
        now_ns=time.time_ns(),
        badge=lambda: read_badge(site.readers),
        may_decide=principal is None or principal.allows(Scope.DECIDE),
        may_not=may_not_decide(request, site.settings),
        must_sign_in=must_sign_in(request, site.settings),
        data=_folder_for_commands(site.folder.path),
        keeps_text=site.settings.retention != RetentionMode.METADATA_ONLY,
    )
