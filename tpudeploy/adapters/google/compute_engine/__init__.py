"""Slices of one host as instances of Compute Engine. docs/compute-engine.md says how their life is read."""
