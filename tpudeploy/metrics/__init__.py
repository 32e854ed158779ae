"""What a running server reports of its load, which thresholds it crosses, and what would help."""
