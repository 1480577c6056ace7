"""Approvals as people see them: what waits, one action with its whole story, and the decision."""
