"""Who has to approve what a rule holds: how many people, and out of whom.

A rule that says require_approval says it in its metadata, as in
`{"approvals_required": 2, "approvers": ["ana", "bo", "cid"]}`. Where several rules hold a call, the
most people are required, out of those whom all of these rules name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from hansard_compiler.policy.errors import PolicyRuleError

MOST_APPROVERS: Final = 20
_NAME_CHARS: Final = 200


@dataclass(frozen=True, slots=True)
class Approvers:
    """`required` different people, out of `names`; None: out of anybody who may decide."""

    required: int = 1
    names: tuple[str, ...] | None = None

    def joined(self, other: Approvers) -> Approvers:
        """Return what meets both; no name is left where they have none in common."""
        required = max(self.required, other.required)
        if self.names is None or other.names is None:
            return Approvers(required, other.names if self.names is None else self.names)
        keys = {one.casefold() for one in other.names}
        return Approvers(required, tuple(one for one in self.names if one.casefold() in keys))


ANYBODY: Final = Approvers()


def parse_approvers(metadata: Mapping[str, Any], where: str, *, asks: bool) -> Approvers:
    """Read who approves out of a rule's metadata; raises PolicyRuleError.

    `asks`: the rule says require_approval; of any other rule these would do nothing.
    """
    present = {"approvals_required", "approvers"} & metadata.keys()
    if not present:
        return ANYBODY
    if not asks:
        raise PolicyRuleError(f"{where}.{min(present)}", "only a rule of require_approval has it")
    required = metadata.get("approvals_required", 1)
    if type(required) is not int or not 1 <= required <= MOST_APPROVERS:
        raise PolicyRuleError(
            f"{where}.approvals_required", f"expected 1 to {MOST_APPROVERS}, found {required!r}"
        )
    if "approvers" not in metadata:
        return Approvers(required)
    names = metadata["approvers"]
    if not isinstance(names, list) or not all(map(_is_name, names)):
        raise PolicyRuleError(f"{where}.approvers", f"expected a list of names, found {names!r}")
    people = {one.casefold() for one in names}
    if not required <= len(people) or len(names) > MOST_APPROVERS:
        raise PolicyRuleError(
            f"{where}.approvers",
            f"expected {required} to {MOST_APPROVERS} names, found {len(people)}",
        )
    return Approvers(required, tuple(names))


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value.strip()) <= len(value) <= _NAME_CHARS
