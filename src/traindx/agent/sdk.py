"""What the server needs of the MCP SDK, under one name for its first and its second version.

Only the second knows how to ask for roots in every revision of the protocol; with the first, the
server asks through the session.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from traindx import __version__

if TYPE_CHECKING:
    from mcp.server.mcpserver import Context, MCPServer
    from mcp.server.mcpserver.exceptions import ResourceNotFoundError as NoSuchPage
    from mcp.server.mcpserver.exceptions import ToolError

    Granted = Any
    CallToolResult = Any
    ToolAnnotations = Any
    VERSION: dict[str, Any]
else:
    from mcp.types import CallToolResult, ToolAnnotations

    try:
        from mcp.server.mcpserver import Context, ListRoots, MCPServer, Resolve
        from mcp.server.mcpserver.exceptions import ResourceNotFoundError as NoSuchPage
        from mcp.server.mcpserver.exceptions import ToolError
        from mcp.types import ListRootsResult
    except ImportError:
        from mcp.server.fastmcp import Context
        from mcp.server.fastmcp import FastMCP as MCPServer
        from mcp.server.fastmcp.exceptions import ToolError

        Granted = Context
        NoSuchPage = ValueError
        VERSION = {}  # it tells the client its own version instead
    else:

        def ask_for_roots(context: Context) -> ListRoots | None:
            """Ask a client that has roots for them."""
            told = context.client_capabilities
            return ListRoots() if told is not None and told.roots is not None else None

        VERSION = {"version": __version__}
        Granted = Annotated[ListRootsResult | None, Resolve(ask_for_roots)]

__all__ = [
    "VERSION",
    "CallToolResult",
    "Context",
    "Granted",
    "MCPServer",
    "NoSuchPage",
    "ToolAnnotations",
    "ToolError",
    "roots_in",
]


async def roots_in(granted: Any) -> list[str] | None:
    """Return the addresses of the client's roots, or None if it has no say in them."""
    if granted is not None and hasattr(granted, "session"):
        told = granted.session.client_params
        if told is None or told.capabilities.roots is None:
            return None
        granted = await granted.session.list_roots()
    return None if granted is None else [str(root.uri) for root in granted.roots]
