"""Exports: the same deployment for another tool, and what that tool cannot express."""
