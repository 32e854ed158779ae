"""Implement the command line: it parses arguments, prints text and returns an exit code."""
