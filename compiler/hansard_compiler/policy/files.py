"""Rule sets as files: JSON always, YAML with the extra `yaml`; and the four that are shipped.

Both readers are strict where a policy could say something else than its author meant: a key that
stands twice is refused, and in YAML so are anchors, aliases and tags.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from importlib import resources
from typing import Any

from hansard_compiler.policy.errors import PolicyRuleError
from hansard_compiler.policy.rules import RuleSet, parse_rule_set

SHIPPED = ("support-agent", "research-agent", "coding-agent", "summarizer")
_MAX_BYTES = 4 * 1024 * 1024


def read_rule_set(data: bytes, *, name: str = "rules.json") -> RuleSet:
    """Read a rule set from a file's bytes; a name ending in .yaml or .yml means YAML.

    Raises PolicyRuleError, with the place in the file.
    """
    return parse_rule_set(read_document(data, name=name), where=name)


def read_document(data: bytes, *, name: str) -> Any:
    """Read a file's bytes as plain values; raises PolicyRuleError."""
    if len(data) > _MAX_BYTES:
        raise PolicyRuleError(name, f"{len(data)} bytes; at most {_MAX_BYTES}")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise PolicyRuleError(name, f"not UTF-8: {error}") from None
    is_yaml = name.lower().endswith((".yaml", ".yml"))
    return _read_yaml(text, name) if is_yaml else _read_json(text, name)


@lru_cache(maxsize=len(SHIPPED))
def shipped_rule_set(name: str) -> RuleSet:
    """Return one of the rule sets that come with Hansard (`SHIPPED`)."""
    return parse_rule_set(shipped_document(name), where=f"{name}.json")


def shipped_document(name: str) -> Any:
    """Return a rule set that comes with Hansard as the values of its file."""
    if name not in SHIPPED:
        raise PolicyRuleError(name, f"no such rule set; there are {', '.join(SHIPPED)}")
    file = resources.files("hansard_compiler") / "policies" / f"{name}.json"
    return read_document(file.read_bytes(), name=f"{name}.json")


def _read_json(text: str, name: str) -> Any:
    def unique(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
        keys = [key for key, _ in pairs]
        twice = {key for key in keys if keys.count(key) > 1} if len({*keys}) < len(keys) else set()
        if twice:
            raise PolicyRuleError(name, f"the key {min(twice)!r} stands twice in one mapping")
        return dict(pairs)

    try:
        return json.loads(text, object_pairs_hook=unique)
    except (ValueError, RecursionError) as error:
        raise PolicyRuleError(name, f"not JSON: {error}") from None


def _read_yaml(text: str, name: str) -> Any:
    try:
        import yaml
    except ImportError:
        raise PolicyRuleError(
            name,
            "reading YAML needs PyYAML: pip install 'hansard[yaml]', or write the rules as JSON",
        ) from None
    try:
        for event in yaml.parse(text, Loader=yaml.SafeLoader):
            _refuse_indirection(event, name)
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        _refuse_doubles(node, name)
        return yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError) as error:
        raise PolicyRuleError(name, f"not YAML: {error}") from None


def _refuse_indirection(event: Any, name: str) -> None:
    line = event.start_mark.line + 1 if event.start_mark else 0
    if getattr(event, "anchor", None):
        raise PolicyRuleError(name, f"line {line}: anchors and aliases are not read")
    if getattr(event, "tag", None):
        raise PolicyRuleError(name, f"line {line}: tags are not read")


def _refuse_doubles(node: Any, name: str) -> None:
    if node is None or isinstance(node.value, str):
        return
    if node.id == "mapping":
        keys = [key.value for key, _ in node.value if isinstance(key.value, str)]
        twice = {key for key in keys if keys.count(key) > 1}
        if twice:
            line = node.start_mark.line + 1
            raise PolicyRuleError(name, f"line {line}: the key {min(twice)!r} stands twice")
    for child in node.value:
        for part in child if isinstance(child, tuple) else (child,):
            _refuse_doubles(part, name)
