"""A redacted archive of what explains a deployment, to send to a person who helps with it."""
