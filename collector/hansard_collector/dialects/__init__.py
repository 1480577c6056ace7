"""The attributes of senders, one module a dialect, and the table that chooses.

`table.py` lists for each field of the normal form where it may stand, in order; a dialect's module
holds the readers that a plain look-up cannot do. Fields are chosen one by one, for one span often
speaks several dialects at once.
"""
