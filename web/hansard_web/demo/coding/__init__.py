"""The golden path: a coding agent makes a failing test pass, and everything it did can be asked.

What is about code stands here and in `examples/`; nothing below knows of it.
"""
