"""Benchmarks: each prints its figure beside the bar it has to reach. python -m bench --help"""
