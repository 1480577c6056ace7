"""Model calls and tool calls counted once, whoever reported them how often."""
