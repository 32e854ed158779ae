"""The adapters: the only modules that do I/O."""
