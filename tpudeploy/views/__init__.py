"""Pure text: what people and pipelines read. No decisions, no effects."""
