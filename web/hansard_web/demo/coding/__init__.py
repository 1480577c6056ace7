"""The golden path: a coding agent makes a failing test pass, and all it did can be looked up.

What is about code stands here and in `examples/`; nothing below knows of it.
"""
