"""Principals: who may decide, by what they are recognised, and how long.

`model` says what a principal is, `tokens` keeps named tokens, `sessions` those of browsers, `links`
the addresses that sign a browser in; `service` is the one way in for a server and the command line.
"""
