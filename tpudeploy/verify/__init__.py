"""The effective configuration of a server, compared with what its profile declares."""
