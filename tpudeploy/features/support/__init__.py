"""A redacted archive of what explains a deployment, for whoever helps with it."""
