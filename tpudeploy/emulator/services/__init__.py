"""The other services that a deployment calls: a file for each; methods.py has a row for each method. They only read."""
