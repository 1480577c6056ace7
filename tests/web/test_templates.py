"""What no template may hold, so that the strict CSP never has to forgive anything."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

import pytest
from jinja2 import Environment

from hansard_web.ui.render import make_environment

TEMPLATES = Path(str(files("hansard_web"))) / "templates"
SOURCES = sorted(TEMPLATES.rglob("*.html"))
NAMES = [path.relative_to(TEMPLATES).as_posix() for path in SOURCES]

FORBIDDEN = {
    "a style attribute": r"\sstyle\s*=",
    "an event handler": r"\son[a-z]+\s*=",
    "an inline script": r"<script(?![^>]*\bsrc=)",
    "a style element": r"<style",
    "hx-on, which needs eval": r"\bhx-on\b",
    "js: values, which need eval": r"[\"']js:",
    "a filter in a trigger, which needs eval": r"hx-trigger=\"[^\"]*\[",
    "an external address": r"(?:src|href)=\"(?:https?:)?//",
    "an external sprite": r"<use href=\"(?!#)",
    "markup let through unescaped": r"\|\s*safe\b",
    "escaping switched off": r"autoescape\s+false",
}


@pytest.mark.parametrize("source", SOURCES, ids=NAMES)
def test_a_template_holds_nothing_the_csp_refuses(source: Path) -> None:
    text = re.sub(r"\{#.*?#\}", "", source.read_text(encoding="utf-8"), flags=re.DOTALL)

    found = [what for what, pattern in FORBIDDEN.items() if re.search(pattern, text)]

    assert found == []


@pytest.fixture(scope="module")
def templates() -> Environment:
    return make_environment()


@pytest.mark.parametrize("name", NAMES)
def test_a_template_compiles(templates: Environment, name: str) -> None:
    templates.get_template(name)


def test_every_icon_a_template_names_is_in_the_sprite() -> None:
    sprite = (TEMPLATES / "_sprite.html").read_text(encoding="utf-8")
    known = set(re.findall(r'<symbol id="?i-([\w-]+)', sprite))
    text = "".join(source.read_text(encoding="utf-8") for source in SOURCES)
    named = set(re.findall(r'#i-([\w-]+)"', text)) | set(re.findall(r'\bicon\("([\w-]+)"', text))

    assert named <= known
