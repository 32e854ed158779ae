"""The log of a boot: how far it came, how long each part took, and the first real cause of its end."""
