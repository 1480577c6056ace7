"""Principals: who may decide, by what they are recognised, and how long.

`model` says what a principal is, `tokens` stores named tokens, `sessions` those of browsers;
`service` is the entry for a server and the command line, with the links that sign a browser in.
"""
