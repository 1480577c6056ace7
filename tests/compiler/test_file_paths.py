"""Ways to write a path so that a rule about a directory does not see what would be opened."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hansard_compiler.policy.checks import PolicyCheck
from hansard_compiler.policy.engine import Policy
from hansard_compiler.policy.errors import PolicyRuleError
from hansard_compiler.policy.file_paths import is_under, parse_directory
from hansard_compiler.policy.rules import Effect, RuleSet
from tests.compiler.policy_makers import CONTEXT, rule, tool

WINDOWS = {"path": "C:\\Windows", "system": "windows"}
MAC = {"path": "/Users/ana/Café", "ignore_case": True}

# Each opens a file in the directory, or may: a rule that denies the directory has to deny it.
EVASIONS: list[tuple[Any, str]] = [
    ("/etc", "/etc"),
    ("/etc", "/etc/"),
    ("/etc", "/etc/passwd"),
    ("/etc", "//etc/passwd"),
    ("/etc", "///etc/passwd"),
    ("/etc", "//etc/../etc/passwd"),
    ("/etc", "//./etc/x"),
    ("/etc", "/./etc/passwd"),
    ("/etc", "/etc/./passwd"),
    ("/etc", "/etc//passwd"),
    ("/etc", "/etc/."),
    ("/etc", "/etc/passwd/."),
    ("/etc", "/etc/passwd/"),
    ("/etc", "/../etc/passwd"),
    ("/etc", "/../../../etc/passwd"),
    ("/etc", "//../etc/passwd"),
    ("/etc", "/srv/../etc/passwd"),
    ("/etc", "/srv/desk/../../etc/passwd"),
    ("/etc", "/srv//..//etc/passwd"),
    ("/etc", "/srv/.././etc/passwd"),
    ("/etc", "/proc/self/root/etc/passwd"),
    ("/etc", "/proc/1/root/etc/passwd"),
    ("/etc", "/proc/thread-self/root/etc/passwd"),
    ("/etc", "/proc/self/task/77/root/etc/passwd"),
    ("/etc", "/proc/self/root/proc/self/root/etc/passwd"),
    ("/etc", "/proc/self/root/../etc/passwd"),
    ("/etc", "/proc/self/cwd/../etc/passwd"),
    ("/etc", "/proc/self/fd/5/passwd"),
    ("/etc", "/dev/fd/5/passwd"),
    ("/etc", "/dev/stdin"),
    ("/etc", "file:///etc/passwd"),
    ("/etc", "FILE:/etc/passwd"),
    ("/etc", "etc/passwd"),
    ("/etc", "../../etc/passwd"),
    ("/etc", "~/../../etc/passwd"),
    ("/etc", "~root/../etc/passwd"),
    ("/etc", "$ROOT/etc/passwd"),
    ("/etc", "${ROOT}etc/passwd"),
    ("/etc", "/etc/passwd\0.txt"),
    ("/etc/", "/etc"),
    ("//etc", "/etc/passwd"),
    ("/etc/.", "/etc/passwd"),
    ("secrets", "./secrets/key"),
    ("secrets", "src/../secrets/key"),
    ("secrets", ".//secrets//key"),
    ("secrets", "../checkout/secrets/key"),
    ("secrets", "src\\..\\secrets\\key"),
    ("secrets", "secrets\\key"),
    ("secrets", "secrets./key"),
    (WINDOWS, "c:\\windows\\system.ini"),
    (WINDOWS, "C:/WINDOWS/system.ini"),
    (WINDOWS, "C:\\Windows.\\system.ini"),
    (WINDOWS, "C:\\Windows \\system.ini"),
    (WINDOWS, "C:\\Windows...\\system.ini"),
    (WINDOWS, "C:\\x\\..\\Windows\\system.ini"),
    (WINDOWS, "C:\\x\\.. \\Windows\\system.ini"),
    (WINDOWS, "\\\\?\\C:\\Windows\\system.ini"),
    (WINDOWS, "\\\\.\\C:\\Windows\\system.ini"),
    (WINDOWS, "//?/C:/Windows/system.ini"),
    (WINDOWS, "\\\\localhost\\C$\\Windows\\system.ini"),
    (WINDOWS, "\\\\127.0.0.1\\Admin$\\system.ini"),
    (WINDOWS, "\\\\?\\UNC\\localhost\\C$\\Windows"),
    (WINDOWS, "\\\\?\\GLOBALROOT\\Device\\HarddiskVolume1\\Windows"),
    (WINDOWS, "C:Windows\\system.ini"),
    (WINDOWS, "\\Windows\\system.ini"),
    (WINDOWS, "C:\\WINDOW~1\\system.ini"),
    (WINDOWS, "C:\\Windows:$I30:$INDEX_ALLOCATION\\system.ini"),
    (WINDOWS, "C:\\Windows\\system.ini::$DATA"),
    (WINDOWS, "%SystemRoot%\\system.ini"),
    ("C:\\Windows", "c:/windows/system.ini"),
    (MAC, "/users/ANA/café/key"),
    (MAC, "/Users/ana/Cafe\u0301/key"),
    (MAC, "/USERS/ana/CAFE\u0301/key"),
    (MAC, "/Users/ana/Ca\u200cfé/key"),
]

# Opened as they are written they lie elsewhere; a program that expands, decodes, trims or
# normalizes what it is given opens a file in the directory.
READ_OTHERWISE: list[tuple[Any, str]] = [
    ("/etc", "/srv/$HOME/../etc"),
    ("/etc", "/${X}tc/passwd"),
    ("/etc", "/$X/passwd"),
    ("/etc", "/$(echo etc)/passwd"),
    ("/etc", "/`echo etc`/passwd"),
    ("/etc", "/%65tc/passwd"),
    ("/etc", "/%2565tc/passwd"),
    ("/etc", "/srv/%2e%2e/etc/passwd"),
    ("/etc", "/srv%2f..%2fetc/passwd"),
    ("/etc", "/srv/..%2fetc/passwd"),
    ("/etc", "/e?c/passwd"),
    ("/etc", "/e*c/passwd"),
    ("/etc", "/[e]tc/passwd"),
    ("/etc", "/{etc,srv}/passwd"),
    ("/etc", "/srv/{..,x}/etc/passwd"),
    ("/etc", "/srv/{../etc,x}/passwd"),
    ("/etc", "/srv/.?/etc/passwd"),
    ("/etc", "/srv/[.]./etc/passwd"),
    ("/etc", "/\uff45tc/passwd"),
    ("/etc", "/srv/\u2025/etc/passwd"),
    ("/etc", "/srv\uff0f..\uff0fetc/passwd"),
    ("/etc", "/e\u200btc/passwd"),
    ("/etc", "/etc\u2060/passwd"),
    ("/etc", "\ufeff/etc/passwd"),
    ("/etc", "/etc\n"),
    ("/etc", "/etc "),
    ("/etc", " /etc/passwd"),
    ("/etc", " file:///etc/passwd"),
    ("/etc", "/etc\\passwd"),
    ("/etc", "/srv/..\\etc/passwd"),
    ("/etc", "/private/etc/passwd"),
    ("/etc", "/System/Volumes/Data/private/etc/passwd"),
    ("/private/etc", "/etc/passwd"),
    ("/etc", "/.vol/16777220/2/etc/passwd"),
    (WINDOWS, "C:\\%WINDIR%\\x"),
    (WINDOWS, "C:\\x\\%windir%\\..\\y"),
    (WINDOWS, "C:\\x\\!TEMP!\\y"),
    (WINDOWS, "C:\\%57indows\\x"),
    (WINDOWS, "C:\\W?ndows\\x"),
    (WINDOWS, "C:\\Win*\\x"),
    (WINDOWS, "C:\\\uff37indows\\x"),
    (WINDOWS, "C:\\srv\\$env:windir"),
    (WINDOWS, "\\\\host\\C$.\\Windows"),
    (WINDOWS, "\\\\host\\C$ \\Windows"),
    (WINDOWS, "\\\\wsl$\\Ubuntu\\mnt\\c\\Windows"),
    (WINDOWS, "\\\\wsl.localhost\\Ubuntu\\mnt\\c\\Windows"),
]


# None of these is in the directory, and each is plainly elsewhere.
ELSEWHERE: list[tuple[Any, str]] = [
    ("/etc", "/srv/x"),
    ("/etc", "/etcetera/x"),
    ("/etc", "/ETC/passwd"),  # another directory, unless the rule says that case does not count
    ("/etc", "/etc/../srv"),
    ("/etc", "/etc./passwd"),  # a dot is part of a name here
    ("/etc", "/srv/etc/passwd"),
    ("/etc", "/proc/self/status"),
    ("/etc", "/dev/null"),
    ("secrets", "src/a.py"),
    ("secrets", "secretsauce/a"),
    (WINDOWS, "C:\\Users\\ana"),
    (WINDOWS, "D:\\Windows"),
    (WINDOWS, "\\\\server\\share\\Windows"),
    (MAC, "/Users/ana/Cafeteria"),
]


# Each begins like the directory and opens something else, or may.
ESCAPES: list[tuple[Any, str]] = [
    ("/srv/desk", "/srv/desk/../../etc/passwd"),
    ("/srv/desk", "/srv/desk/..//../etc/passwd"),
    ("/srv/desk", "/srv/desk/.././x"),
    ("/srv/desk", "/srv/desk/../desktop/x"),
    ("/srv/desk", "/srv/desk2"),
    ("/srv/desk", "/srv/desk/../../proc/self/root/etc/passwd"),
    ("/srv/desk", "/srv/desk/../../proc/self/cwd/x"),
    ("/proc", "/proc/self/root/etc/passwd"),
    ("tests", "tests/../src/a.py"),
    ("tests", "tests/../../etc/passwd"),
    ("tests", "tests\\..\\src\\a.py"),
    ("tests", "tests\\a.py"),
    ({"path": "tests", "system": "windows"}, "tests\\..\\src\\a.py"),
    ({"path": "C:\\srv", "system": "windows"}, "C:\\srv\\..\\Windows\\x"),
    ({"path": "C:\\srv", "system": "windows"}, "C:\\srv\\CON"),
    ({"path": "C:\\srv", "system": "windows"}, "C:\\srv\\nul.txt"),
    ({"path": "C:\\srv", "system": "windows"}, "\\\\?\\C:\\srv\\..\\x"),
]


def judged(effect: str, directory: Any, path: str) -> PolicyCheck:
    """Judge a tool's path by one rule about the directory; what it does not permit is denied."""
    one = rule(effect=effect, conditions={"arguments.path": {"under": directory}})
    policy = Policy([RuleSet("sole", "1", (one,), defaults={"do": Effect.DENY})])
    if effect == "deny":
        policy = Policy(rules=[one])
    return policy.check_tool(CONTEXT, tool(arguments={"path": path}))


def test_at_least_sixty_ways_are_tried() -> None:
    assert len(EVASIONS) >= 60
    assert len({(str(directory), path) for directory, path in EVASIONS}) == len(EVASIONS)


@pytest.mark.parametrize(("directory", "path"), EVASIONS)
def test_what_opens_a_file_of_a_denied_directory_is_denied(directory: Any, path: str) -> None:
    assert judged("deny", directory, path).is_denied


@pytest.mark.parametrize(("directory", "path"), READ_OTHERWISE)
def test_what_a_program_may_read_as_a_denied_directory_is_denied(directory: Any, path: str) -> None:
    assert judged("deny", directory, path).is_denied
    assert judged("allow", directory, path).is_denied


@pytest.mark.parametrize(
    "more",
    [
        {"path": ["/etc/passwd"]},
        {"path": {"path": "/etc/passwd"}},
        {"path": b"/etc/passwd"},
        {"path": 7},
        {"at": {"path": "/etc/passwd"}, "at.path": "/srv/x"},
        {"at": {"path": "/srv/x"}, "at.path": "/etc/passwd"},
    ],
)
def test_an_argument_of_another_form_or_two_of_one_name_are_denied(more: dict[str, Any]) -> None:
    field = "arguments.at.path" if "at" in more else "arguments.path"
    for effect, directory in (("deny", "/etc"), ("allow", "/srv")):
        one = rule(effect=effect, conditions={field: {"under": directory}})
        assert Policy(rules=[one]).check_tool(CONTEXT, tool(arguments=more)).is_denied


@pytest.mark.parametrize(("directory", "path"), ELSEWHERE)
def test_what_is_elsewhere_is_not_denied(directory: Any, path: str) -> None:
    assert not judged("deny", directory, path).is_denied


@pytest.mark.parametrize(("directory", "path"), [*ESCAPES, *ELSEWHERE])
def test_a_rule_that_allows_a_directory_allows_nothing_else(directory: Any, path: str) -> None:
    assert judged("allow", directory, path).is_denied


@pytest.mark.parametrize(
    ("directory", "path"),
    [
        ("/srv", "/srv/a"),
        ("/srv", "/srv/app/[id]/$postId.tsx"),
        ("/srv", "/srv/A$Inner.class"),
        ("/srv", "/srv/a%20b/100%.txt"),
        ("/srv/100%25", "/srv/100%25/a"),
        ("/srv/\ufb01les", "/srv/\ufb01les/a"),
        ("/srv", "/srv/**/*.py"),
        ("/srv", "/srv/会議/é.md"),
        ("/private/tmp", "/private/tmp/x"),
        ("tests", "tests/a.py"),
        (WINDOWS, "c:/windows/x"),
        (MAC, "/users/ana/CAFÉ"),
    ],
)
def test_a_rule_that_allows_a_directory_allows_what_is_in_it(directory: Any, path: str) -> None:
    assert not judged("allow", directory, path).is_denied


@pytest.mark.parametrize(
    ("directory", "reason"),
    [
        ("", "it is empty"),
        (7, "expected a path"),
        ({"path": "/x", "case": True}, "expected path, system and ignore_case, found case"),
        ({"path": "/x", "system": "vms"}, "expected posix or windows"),
        ({"path": "/x", "ignore_case": "yes"}, "expected a path"),
        ({"system": "posix"}, "expected a path"),
        ("~/x", "a program may expand its beginning"),
    ],
)
def test_a_directory_that_is_not_clear_is_refused(directory: Any, reason: str) -> None:
    with pytest.raises(PolicyRuleError, match=reason):
        rule(conditions={"arguments.path": {"under": directory}})


@given(parts=st.lists(st.sampled_from(["..", ".", "", "a", "b", "a.", "…"]), max_size=9))
def test_paths_without_links_are_judged_as_the_system_opens_them(parts: list[str]) -> None:
    path = "/" + "/".join(parts)
    opened = Path(os.path.realpath(path))

    assert is_under(path, parse_directory("/a/b")) is opened.is_relative_to("/a/b")
