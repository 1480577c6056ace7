"""Approvals: proposed, decided, claimed once, executed; each with its event."""
