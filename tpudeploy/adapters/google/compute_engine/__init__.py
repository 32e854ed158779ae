"""Slices as instances of Compute Engine: single ones, and groups of them for several hosts. docs/compute-engine.md says how their life is read."""
