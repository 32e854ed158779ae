"""The YAML that a person writes becomes a Profile, or every problem in it at once. Start at parse.py."""
