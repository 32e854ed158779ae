"""The version. The packages are built with this one, and nothing else says it."""

VERSION = "0.1.0"
