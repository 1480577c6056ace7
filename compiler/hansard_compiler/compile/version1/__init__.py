"""Passes as version 0.1 ran them: a compile that it made is made again with these, bit for bit.

Nothing new is compiled with them, and nothing in them is changed.
"""
