"""The settings that a hook reads, without the machinery of `hansard._config.settings`.

Names, environment and defaults are rows of `hansard._config.settings.SETTINGS`; a test compares the
two. What cannot be read is ignored: a hook has no one to warn.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

DEFAULT_THRESHOLD = 0.75
DEFAULT_TIMEOUT_MS = 2000
DEFAULT_CLASSIFIER_TIMEOUT_MS = 10_000
RULES, OFF = "rules", "off"


class HookSettings:
    """What a hook runs with."""

    __slots__ = (
        "classifier", "classifier_timeout_ms", "data", "endpoint", "model", "record", "retention",
        "threshold", "timeout_ms", "token",
    )  # fmt: skip

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.data: str = values["data"]
        self.threshold = _number(values.get("hook_threshold"), DEFAULT_THRESHOLD, most=1.0)
        self.timeout_ms = _number(values.get("hook_timeout_ms"), DEFAULT_TIMEOUT_MS, most=60_000)
        self.classifier_timeout_ms = _number(
            values.get("hook_classifier_timeout_ms"), DEFAULT_CLASSIFIER_TIMEOUT_MS, most=60_000
        )
        own = str(values.get("hook_classifier") or "").strip()
        shared = "" if own else _for_commands(values.get("classifier"))
        self.classifier = own or {"": RULES, "offline": RULES}.get(shared, shared)
        # PROVIDER:MODEL of the setting `classifier`, which `hansard classify` calls.
        self.model = shared if self.classifier not in (RULES, OFF) else ""
        self.record = str(values.get("hook_record", "true")).strip().lower() not in (
            "false", "0", "no", "off",
        )  # fmt: skip
        self.endpoint: str | None = values.get("endpoint") or None  # None: none was set
        self.token: str | None = values.get("token") or None
        # None: none was set, and secrets are cut out here or by the server on this machine.
        self.retention: str | None = values.get("retention") or None


_ENVIRONMENT = {
    "hook_threshold": ("HANSARD_HOOK_THRESHOLD",),
    "hook_timeout_ms": ("HANSARD_HOOK_TIMEOUT_MS",),
    "hook_classifier": ("HANSARD_HOOK_CLASSIFIER",),
    "hook_classifier_timeout_ms": ("HANSARD_HOOK_CLASSIFIER_TIMEOUT_MS",),
    "classifier": ("HANSARD_CLASSIFIER",),
    "hook_record": ("HANSARD_HOOK_RECORD",),
    "endpoint": ("HANSARD_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"),
    "token": ("HANSARD_TOKEN",),
    "retention": ("HANSARD_RETENTION",),
}


def load_hook_settings(
    arguments: Mapping[str, Any] | None = None, environment: Mapping[str, str] | None = None
) -> HookSettings:
    """Return the settings: arguments, environment, [sdk] of the file, defaults, in this order."""
    environment = os.environ if environment is None else environment
    arguments = arguments or {}
    data = arguments.get("data") or environment.get("HANSARD_DATA") or data_folder(environment)
    data = os.path.expanduser(data)
    found = _from_file(environment.get("HANSARD_CONFIG") or f"{data}/hansard.toml")
    for name, variables in _ENVIRONMENT.items():
        for variable in reversed(variables):
            if environment.get(variable):
                found[name] = environment[variable]
    found |= {name: value for name, value in arguments.items() if value is not None}
    found["data"] = data
    return HookSettings(found)


def _from_file(path: str) -> dict[str, Any]:
    try:
        with open(os.path.expanduser(path), "rb") as file:
            import tomllib  # only who has such a file pays for it

            whole = tomllib.load(file)
    except (OSError, ValueError):
        return {}
    table = whole.get("sdk", {})
    found = dict(table) if isinstance(table, dict) else {}
    return found | {"classifier": whole.get("classifier")}  # the server's: it is everybody's


def _for_commands(value: Any) -> str:
    """Return the setting `classifier` for commands: its own choice, else the common."""
    words = value.split() if isinstance(value, str) else value
    if not isinstance(words, list) or not all(isinstance(one, str) for one in words):
        return ""
    own = [one.partition("=")[2] for one in words if one.startswith("irreversible=")]
    common = [one for one in words if "=" not in one]
    return [*common, *own][-1] if own or common else ""


def data_folder(environment: Mapping[str, str]) -> str:
    """Return the platform's user data folder; as platformdirs has it, on Linux without it."""
    if sys.platform == "linux":
        base = environment.get("XDG_DATA_HOME", "").strip() or os.path.expanduser("~/.local/share")
        return f"{base}/hansard"
    from platformdirs import user_data_dir

    return user_data_dir("hansard", appauthor=False)


def _number(value: Any, default: float, *, most: float) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        return default
    return number if 0 <= number <= most else default
