"""The load client: thousands of streams to one endpoint, in one thread, timed as they are read."""
