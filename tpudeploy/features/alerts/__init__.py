"""Alerts: the watched facts of a deployment, the rules that watch them, the formats of the rules, and a dashboard."""
