"""A report as one HTML file: no script, no network, light and dark, from a phone's width up."""
