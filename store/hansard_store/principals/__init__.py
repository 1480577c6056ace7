"""Principals: who may decide, by what they are recognised, and how long.

`model` says what a principal is; `service` stores named tokens, sessions of browsers and the
links that sign one in, and is the entry for a server and the command line.
"""
