"""The state backends, one file each."""
