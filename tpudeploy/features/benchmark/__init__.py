"""Benchmarks as arithmetic: which cells to measure, figures from samples, whether to trust them, what follows."""
