"""The doors: the only modules that touch the world."""
