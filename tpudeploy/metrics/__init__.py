"""The load that a running server reports, the thresholds that it crosses, and the remedies."""
