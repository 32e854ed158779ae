"""Implement `tpudeploy mcp`, a server of the Model Context Protocol. Only these modules import its SDK."""
