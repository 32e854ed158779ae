"""The version, read from the installed distribution when it is asked for."""

VERSION = "0.1.0"
