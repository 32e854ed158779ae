"""Where states live. One file a backend."""
