"""What can be wrong with policy: rules that cannot be read, conditions that cannot be judged."""

from __future__ import annotations

from hansard_compiler.errors import ConfigError, HansardError


class PolicyRuleError(ConfigError):
    """A rule set that cannot be used as it is; nothing of it takes effect."""

    code = "invalid_policy"

    def __init__(self, where: str, problem: str) -> None:
        super().__init__(f"{where}: {problem}")
        self.where = where  # as in "coding-agent.json: rules[2].effect"
        self.problem = problem


class ConditionError(HansardError):
    """A condition that cannot be judged on its facts: the check denies."""

    code = "policy_condition_error"

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}")
        self.field = field
        self.problem = problem
