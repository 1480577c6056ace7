"""Policy: the rules in force, API and command."""
