"""Benchmarks as arithmetic: which cells, what may be asked, what the samples come to, and whether to believe it."""
