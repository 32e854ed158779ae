"""The startup script under the systemd of a distribution: optional, for it takes root and namespaces."""
