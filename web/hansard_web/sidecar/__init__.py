"""The sidecar: runs, steps and calls that programs without the SDK tell over HTTP.

What they tell becomes ordinary spans and payloads, made by the SDK's own code and written by the
server's own pipeline. Nothing is remembered between two requests: what is open stands in the store.
"""
