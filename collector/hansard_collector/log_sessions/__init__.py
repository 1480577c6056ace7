"""Runs made of log records: coding agents that export logs and no traces.

`agents` recognises which agent a log record is of, `claude_code`, `codex`, `gemini_cli` and
`generic` build the steps of one agent each, `writer` places the records and updates the steps.
"""
