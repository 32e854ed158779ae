"""Format what people and pipelines read, as pure functions without decisions or effects."""
