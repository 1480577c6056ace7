"""Approvals: proposals, decisions, claims and executions, each written with its audit event."""
