"""The heart: from one observation of a replica to the steps that bring it closer to its deployment."""
