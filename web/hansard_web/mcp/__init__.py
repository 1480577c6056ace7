"""The MCP server: what other runtimes reach of the record, over stdio and `/mcp`.

A tool is one or two requests to the JSON API, made in this process or over HTTP: it answers the
API's bodies, and is refused what the API refuses. `mcp` is imported when somebody asks, not before.
"""
