"""Compiled templates that the next process finds."""

from __future__ import annotations

import marshal
import subprocess
import sys
from pathlib import Path

import pytest
from jinja2 import Environment, FileSystemLoader

import hansard_web
from hansard_web.ui.render import TemplateCache


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Templates, and what they are made by, of a Python that keeps what it compiled."""
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(sys, "pycache_prefix", None)
    (tmp_path / "hello.html").write_text("hello {{ name }}")
    (tmp_path / "filters.py").write_text("one = 1")
    return tmp_path


def environment(folder: Path) -> Environment:
    """What a process has, with a count of what it compiles."""
    cache = TemplateCache(folder, made_by=[folder / "filters.py"])
    return Counting(loader=FileSystemLoader(folder), autoescape=True, bytecode_cache=cache)


class Counting(Environment):
    compiled = 0

    def _compile(self, source: str, filename: str) -> object:
        self.compiled += 1
        return super()._compile(source, filename)


def said(environment: Environment) -> tuple[str, int]:
    text = environment.get_template("hello.html").render(name="you")
    assert isinstance(environment, Counting)
    return text, environment.compiled


def test_what_one_process_compiled_the_next_one_takes(folder: Path) -> None:
    assert said(environment(folder)) == ("hello you", 1)
    assert said(environment(folder)) == ("hello you", 0)


@pytest.mark.parametrize(
    ("changed", "text"), [("hello.html", "bye {{ name }}"), ("filters.py", "one = 2")]
)
def test_a_changed_template_or_filter_is_compiled_again(
    folder: Path, changed: str, text: str
) -> None:
    said(environment(folder))
    (folder / changed).write_text(text)

    assert said(environment(folder))[1] == 1


def test_what_cannot_be_kept_is_compiled_each_time(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "__pycache__").write_text("not a folder")
    assert said(environment(folder)) == ("hello you", 1)
    (folder / "__pycache__").unlink()

    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    assert said(environment(folder)) == ("hello you", 1)
    assert not (folder / "__pycache__").exists()


@pytest.mark.parametrize("code", [b"", b"\xe3torn", marshal.dumps(b"no code")])
def test_a_broken_file_is_compiled_again(folder: Path, code: bytes) -> None:
    said(environment(folder))
    [kept] = (folder / "__pycache__").iterdir()
    head = kept.read_bytes().partition(b"q\x00.")  # its end: what follows is the code
    kept.write_bytes(head[0] + head[1] + code)

    assert said(environment(folder)) == ("hello you", 1)


@pytest.mark.slow
def test_all_templates_are_compiled_ahead_for_an_image(tmp_path: Path) -> None:
    code = (
        "import sys; from hansard_web.ui.render import compile_templates;"
        f"sys.dont_write_bytecode = False; sys.pycache_prefix = {str(tmp_path)!r};"
        "compile_templates()"
    )
    subprocess.run([sys.executable, "-c", code], check=True)

    templates = Path(hansard_web.__path__[0]) / "templates"
    kept = list(tmp_path.rglob("*.template"))
    assert len(kept) == len(list(templates.rglob("*.html")))
