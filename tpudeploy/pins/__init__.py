"""The lock file: digests and commits that names are pinned to."""
