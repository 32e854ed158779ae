"""Cost: what deployments cost at list price, by the ledger that runs write, and what is still running."""
