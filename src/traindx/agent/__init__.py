"""What assistants call: the tools, the folders they are confined to, and the MCP server."""
