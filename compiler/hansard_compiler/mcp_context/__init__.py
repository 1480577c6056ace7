"""What an MCP server offers, as what a compile takes: pure functions over the protocol's JSON.

Resources become candidates, tools tool definitions, prompts assets, roots the boundary of a
workspace. Nothing here speaks the protocol: any client's results will do, as JSON.
"""
