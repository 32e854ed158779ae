"""Learn: a child in an engine's Python prints what that release accepts and computes: data of the catalogue."""
