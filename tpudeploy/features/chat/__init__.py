"""A conversation with a deployed model at a terminal, or one answer to what is piped in."""
