"""The shape of the code: small folders, small functions, no circle of imports, no private names."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Container, Iterator
from pathlib import Path

from tests.test_floors import FLOORS, FOLDERS, ROOT, modules

MOST_MODULES = 20  # directly in a folder; more means that a package is missing
MOST_LINES = 60  # of a function, its signature and docstring included


def production() -> Iterator[tuple[str, Path]]:
    """Yield every module with its dotted name; the demo's example repository is data."""
    for package in FLOORS:
        folder = ROOT / FOLDERS[package]
        for path in modules(package):
            if "repo" not in path.parts:
                parts = path.relative_to(folder).with_suffix("").parts
                yield ".".join(parts).removesuffix(".__init__"), path


def when_imported(tree: ast.AST) -> Iterator[ast.ImportFrom]:
    """Yield the imports that run when a module is imported: none in functions, none for types."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        if isinstance(node, ast.ImportFrom):
            yield node
        yield from when_imported(node)


def test_no_folder_holds_more_modules_than_a_reader_can_look_through() -> None:
    found = Counter(
        str(path.parent.relative_to(ROOT)) for _, path in production() if path.name != "__init__.py"
    )

    assert {name: count for name, count in found.items() if count > MOST_MODULES} == {}


def test_no_function_is_longer_than_a_page() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno} {node.name}"
        for _, path in production()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (node.end_lineno or 0) - node.lineno >= MOST_LINES
    ]

    assert found == []


def named(node: ast.ImportFrom, name: str, known: Container[str]) -> str:
    """Return the module that an import needs: a module of a package, or the package itself."""
    module = f"{node.module}.{name}"
    return module if module in known else str(node.module)


def test_no_modules_import_each_other() -> None:
    trees = {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in production()}
    needs = {
        name: {
            module
            for node in when_imported(tree)
            for alias in node.names
            for module in (named(node, alias.name, trees),)
            if module in trees and module != name
        }
        for name, tree in trees.items()
    }

    while leaves := [name for name, needed in needs.items() if not needed & needs.keys()]:
        for name in leaves:
            del needs[name]
    assert needs == {}  # what is left imports itself, or what does


def test_no_private_name_is_imported_from_another_module() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno} {node.module}.{alias.name}"
        for _, path in production()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and str(node.module).partition(".")[0] in FLOORS
        for alias in node.names
        if alias.name.startswith("_")
        and not alias.name.startswith("__")
        and not (ROOT / FOLDERS[str(node.module).partition(".")[0]]
                 / str(node.module).replace(".", "/") / alias.name).is_dir()
    ]  # fmt: skip

    assert found == []
