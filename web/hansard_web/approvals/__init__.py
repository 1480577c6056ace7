"""Approvals: the inbox, one approval, API and command."""
