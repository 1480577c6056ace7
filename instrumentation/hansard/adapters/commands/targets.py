"""What a path is, as far as its name shows: of the system, somebody's data, a source, rebuildable.

The names stand in the data set under `paths`; this is only how they are compared.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

SYSTEM, DEVICE, HOME, HERE, DATA = "system", "device", "home", "here", "data"
PROTECTED = "protected"  # keys, rights and settings that others depend on
OPEN, OPEN_ALL, SOURCE = "open", "open all", "source"
REBUILDABLE, TEMPORARY, TEMPORARY_ALL, NONE = "rebuildable", "temporary", "temporary all", "none"
# In words; the worst first: of several targets the first of these counts.
CLASSES = {
    SYSTEM: "of the system",
    DEVICE: "a device",
    HOME: "a home folder",
    HERE: "all that is here",
    PROTECTED: "keys, rights or settings",
    DATA: "stored data",
    OPEN_ALL: "whatever a variable names",
    OPEN: "named by a variable",
    SOURCE: "that a person wrote, as far as the name tells",
    TEMPORARY_ALL: "all temporary files",
    REBUILDABLE: "that are made again",
    TEMPORARY: "temporary ones",
    NONE: "nothing that is stored",
}


def class_of(text: str, paths: Mapping[str, Any], *, folder: str = "") -> str:
    """Return the class of one path; `folder` is the one that the text changed to, if it did."""
    path = text.replace("\\", "/")
    if folder and not path.startswith(("/", "~", "$")) and path[1:2] != ":":
        path = f"{folder}/{path}"
    if path.startswith("file://"):
        path = path[7:]
    for name in ("${HOME}", "$HOME", "%USERPROFILE%", "$env:USERPROFILE"):
        if path.startswith(name):
            path = "~" + path[len(name) :]
    for name in ("$PWD", "${PWD}", "$(pwd)"):
        if path.startswith(name):
            path = "." + path[len(name) :]
    if path.startswith("$"):
        return _class_of_open(path, paths)
    if path[1:2] == ":" and path[:1].isalpha():  # a drive
        path = path[2:] or "/"
    if path.startswith("~"):
        parts = _parts(path.partition("/")[2])
        all_of_one = len(parts) == 2 and _is_all(parts[1])  # `~/projects/*` is `~/projects`
        return _class_in_home(parts[:1] if all_of_one else parts, paths)
    if path.startswith("/"):
        return _class_of_absolute(_parts(path), paths)
    parts = _parts(path)
    if not parts or all(_is_all(name) or name == ".." for name in parts):
        return HERE
    return _class_of_name(parts, paths)


def _parts(path: str) -> list[str]:
    """Return the names of a path without `.` and with `..` applied, as far as they can be."""
    found: list[str] = []
    for name in path.split("/"):
        if name == ".." and found and found[-1] != "..":
            found.pop()
        elif name == ".." and path.startswith("/"):
            continue
        elif name not in ("", "."):
            found.append(name)
    return found


def _class_of_open(path: str, paths: Mapping[str, Any]) -> str:
    name, _, rest = path.lstrip("${").partition("/")
    name = name.upper().rstrip("}")
    if name in paths["temporary_variables"]:
        return TEMPORARY if _parts(rest) else TEMPORARY_ALL
    if any(word in name for word in paths["rebuildable_words"]):
        return REBUILDABLE
    if any(word in name for word in paths["data_variables"]):
        return DATA
    last = _parts(rest)
    if last and not _is_all(last[-1]):
        found = _class_of_name(last, paths)
        return OPEN if found == SOURCE else found
    return OPEN_ALL if last else OPEN


def _is_all(name: str) -> bool:
    return name in ("*", "**", ".*", "*.*", "{*,.*}", "{}")


def _class_of_absolute(parts: list[str], paths: Mapping[str, Any]) -> str:
    named = [name for name in parts if not _is_all(name)]
    if not named:
        return SYSTEM
    first = named[0]
    if first == "dev":
        is_harmless = len(named) > 1 and (
            named[1] in paths["harmless_devices"] or named[1].startswith("tty")
        )
        return NONE if is_harmless else DEVICE
    if first == "tmp" or named[:2] in (["var", "tmp"], ["private", "tmp"], ["dev", "shm"]):
        inside = named[1:] if first == "tmp" else named[2:]
        return TEMPORARY if inside else TEMPORARY_ALL
    if first in ("home", "Users", "root"):
        depth = 1 if first == "root" else 2
        return HOME if len(named) <= depth else _class_in_home(parts[depth:], paths)
    if first in paths["harmless_roots"]:
        return NONE
    if first in paths["system"]:
        if named[-1] in paths["protected"]:
            return PROTECTED
        is_rebuildable = _class_of_name(named, paths) == REBUILDABLE
        if named[:2] in (["var", "cache"], ["var", "log"]) or is_rebuildable:
            return REBUILDABLE
        return DATA if first == "var" and len(named) > 1 else SYSTEM
    if first in paths["data_roots"]:
        found = _class_of_name(named, paths)
        return DATA if found == SOURCE else found
    return HERE if len(parts) > len(named) and len(named) == 1 else _class_of_name(parts, paths)


def _class_in_home(parts: list[str], paths: Mapping[str, Any]) -> str:
    if not [name for name in parts if not _is_all(name)]:
        return HOME
    if parts[0] in paths["protected"]:
        return PROTECTED
    if parts[0] in paths["home_rebuildable"]:
        return REBUILDABLE
    if any(name.lower() in paths["rebuildable"] for name in parts):
        return REBUILDABLE
    if parts[0] in paths["home_data"] or (parts[0][:1] == "." and len(parts) == 1):
        return DATA
    found = _class_of_name(parts, paths)
    is_whole = len(parts) == 1 and "." not in parts[0]  # ~/projects
    return DATA if found == SOURCE and is_whole else found


def _class_of_name(parts: list[str], paths: Mapping[str, Any]) -> str:
    """Return the class that the names of a path give, those of its folders first."""
    names = [name.lower() for name in parts]
    if any(name in paths["rebuildable"] for name in names):
        return REBUILDABLE
    last = names[-1]
    if last in paths["protected"] or last.startswith(tuple(paths["protected_prefixes"])):
        return PROTECTED
    if last in paths["data_names"] or last.startswith(tuple(paths["data_prefixes"])):
        return DATA
    if last.endswith(tuple(paths["rebuildable_suffixes"])):
        return REBUILDABLE
    if last.endswith(tuple(paths["data_suffixes"])):
        return DATA
    if any(word in name for name in names for word in paths["data_words"]):
        return DATA
    return SOURCE


def worst(classes: list[str]) -> str:
    """Return the class that counts of several targets."""
    return min(classes, key=list(CLASSES).index)
