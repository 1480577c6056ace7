"""The five floors: imports go down only, and what belongs to one floor stays on it (DESIGN §3)."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FLOORS = {
    "hansard_compiler": 1,
    "hansard_store": 2,
    "hansard": 3,
    "hansard_collector": 4,
    "hansard_web": 5,
}
FOLDERS = {
    "hansard_compiler": "compiler",
    "hansard_store": "store",
    "hansard": "instrumentation",
    "hansard_collector": "collector",
    "hansard_web": "web",
}
# What a floor may not know: databases belong to the store, pages to the web, and the compiler is
# pure: no clock, no disk, no network.
FOREIGN = {
    "hansard_compiler": {
        "apsw", "fastapi", "jinja2", "starlette", "grpc", "socket", "time", "datetime", "os",
        "pathlib", "subprocess", "threading", "urllib", "http", "sqlite3",
    },
    "hansard_store": {"fastapi", "jinja2", "starlette", "grpc", "socket", "urllib", "http"},
    "hansard": {"apsw", "fastapi", "jinja2", "starlette", "uvicorn", "rich"},
    "hansard_collector": {"fastapi", "jinja2", "uvicorn", "rich"},
    "hansard_web": {"sqlite3"},
}  # fmt: skip


# Providers are the compiler's one door to the outside: they time what they send, and read keys.
DOORS = {"hansard_compiler": ("compiler/hansard_compiler/providers", {"os", "threading", "time"})}


def foreign_to(package: str, path: Path) -> set[str]:
    """Return what a module may not import."""
    door, permitted = DOORS.get(package, ("none", set()))
    is_door = path.is_relative_to(ROOT / door)
    return FOREIGN[package] - permitted if is_door else FOREIGN[package]


def modules(package: str) -> list[Path]:
    return sorted((ROOT / FOLDERS[package] / package).rglob("*.py"))


def imports(path: Path) -> Iterator[tuple[int, str]]:
    """Yield (line, module) of every import, those inside functions too."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path}:{node.lineno}: imports are written in full"
            yield node.lineno, node.module or ""
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)


@pytest.mark.covers("EX-18")
@pytest.mark.parametrize("package", FLOORS)
def test_imports_go_down_the_floors_only(package: str) -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line} imports {module}"
        for path in modules(package)
        if "demo" not in path.parts  # a tool of the demo is asked for a query
        for line, module in imports(path)
        if FLOORS.get(module.partition(".")[0], 0) > FLOORS[package]
    ]

    assert modules(package)
    assert found == []


@pytest.mark.parametrize("package", FLOORS)
def test_what_belongs_to_another_floor_is_not_imported(package: str) -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line} imports {module}"
        for path in modules(package)
        if "demo" not in path.parts  # a tool of the demo is asked for a query
        for line, module in imports(path)
        if module.partition(".")[0] in foreign_to(package, path)
    ]

    assert found == []


@pytest.mark.parametrize("package", ["hansard_web", "hansard"])
def test_pages_and_programs_run_no_sql(package: str) -> None:
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in modules(package)
        if "demo" not in path.parts  # a tool of the demo is asked for a query
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("execute", "executemany")
    ]

    assert found == []


@pytest.mark.covers("DE-23")
def test_only_the_command_of_the_demo_knows_the_demo() -> None:
    found = {
        path.name
        for package in FLOORS
        for path in modules(package)
        if "demo" not in path.parts
        for _, module in imports(path)
        if module.startswith("hansard_web.demo")
    }

    assert found == {"demo.py"}


@pytest.mark.covers("EX-01")
def test_the_top_level_is_what_was_asked_for() -> None:
    for name in (*FOLDERS.values(), "tests"):
        assert (ROOT / name).is_dir()
    for name in ("pyproject.toml", "README.md"):
        assert (ROOT / name).is_file()


SQL = re.compile(
    r"\s*(SELECT\s|INSERT\s+(OR\s+\w+\s+)?INTO\s|UPDATE\s+\w+\s+SET\s|DELETE\s+FROM\s|PRAGMA\s)"
)


@pytest.mark.parametrize("package", [name for name in FLOORS if name != "hansard_store"])
def test_sql_stands_on_the_floor_of_the_store_only(package: str) -> None:
    found = [
        f"{path.name}:{node.lineno}"
        for path in modules(package)
        if "demo" not in path.parts  # a tool of the demo is asked for a query
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and SQL.match(node.value)
    ]

    assert found == []
