"""Runs made of log records: coding agents that export logs and no traces.

`table` recognises what a log record is, `claude_code`, `codex`, `gemini_cli` and `generic` say so
for one agent each and build its steps, `writer` places the records and keeps the steps up to date.
"""
