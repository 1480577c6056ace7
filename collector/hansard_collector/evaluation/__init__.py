"""Evaluation: what agents say about their tools, held against what the record shows of them.

`claims` finds the statements, `outcomes` reads the executions, `verdicts` compares the two, and
`engine` does it over a store. It names no domain: the phrases and commands of one are data sets of
`hansard.adapters`.
"""
