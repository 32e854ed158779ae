"""The load client: thousands of streams against one endpoint, in one thread, timed as they are read."""
