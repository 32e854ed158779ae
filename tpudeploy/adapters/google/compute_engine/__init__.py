"""Slices as instances of Compute Engine, and as groups of them. docs/explanation/compute-engine.md reads their life."""
