"""Google Cloud, behind its real clients. The only place that imports them."""
