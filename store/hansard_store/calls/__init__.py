"""Model and tool calls: duplicate spans of one call, joined tool calls, and usage rollup."""
