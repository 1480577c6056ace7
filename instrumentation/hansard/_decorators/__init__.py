"""`@agent`, `@tool` and `@trace`, and what they know of their functions."""
