"""What a router in front of the replicas reads, and how it is run."""
