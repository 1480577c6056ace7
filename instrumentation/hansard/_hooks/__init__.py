"""What coding agents run at points of their life cycle: a warning before a call, and a record.

A new process for each event, on the agent's path: nothing here imports `typing`, `dataclasses`,
`pathlib`, click, pydantic or OpenTelemetry before the warning is printed. Everything fails open.
"""
