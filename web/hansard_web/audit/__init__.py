"""The audit log: page, API and command."""
