"""Evaluation: what agents claim about their tools, compared with what the record shows.

`claims` finds the statements, `outcomes` reads the executions, `verdicts` compares the two, and
`engine` does it over a store. It names no domain: the phrases and commands of one are data sets of
`hansard.adapters`.
"""
