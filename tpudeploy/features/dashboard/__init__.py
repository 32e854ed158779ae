"""The dashboard: every deployment live in a browser, on this machine."""
