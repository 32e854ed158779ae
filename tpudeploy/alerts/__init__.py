"""Alerts: what of a deployment is watched, the rules that watch it, the forms they are written in, a dashboard."""
