"""The shell: few, short functions; the only code that orders effects."""
