"""The door for agents: `tpudeploy mcp`, a server of the Model Context Protocol. The only importers of its SDK."""
