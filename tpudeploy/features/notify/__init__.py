"""Notify: URLs and commands are told that a deployment serves, failed or ended, and that most of a budget is spent."""
