"""The Model Context Protocol server: a thin layer of words over the tools.

This module needs the `mcp` extra; only `traindx mcp` imports it.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from traindx.agent import documents
from traindx.agent.bounds import MAX_TIME_S
from traindx.agent.granted_folders import Roots
from traindx.agent.sdk import (
    VERSION,
    CallToolResult,
    Granted,
    MCPServer,
    ToolAnnotations,
    ToolError,
    roots_in,
)
from traindx.agent.workers import Workers
from traindx.errors import TraindxError
from traindx.specialists.plugin.method import INSTRUCTIONS, WHEN

Told = Annotated[CallToolResult, dict[str, Any]]
Paths = Annotated[
    list[str],
    Field(
        description="Files or folders of one run: logs, metrics, configs, source, checkpoints, "
        "tracker files, recordings. None means the granted working folder.",
        max_length=200,
    ),
]
Symptoms = Annotated[
    list[str], Field(description="What the user saw, in the user's own words.", max_length=50)
]
Package = Annotated[
    str | None, Field(description="A context package: a JSON file that names artifacts by role.")
]
Detail = Annotated[
    Literal["summary", "full"],
    Field(description="Begin with the summary; ask for full only if something is left out."),
]


NOTHING: list[str] = []


class Desk:
    """Takes calls: finds out what was granted, and lets a worker do it.

    Each method of a tool's name is that tool, as its parameters are told to the assistant.
    """

    def __init__(self, roots: Sequence[Path]) -> None:
        self._roots = Roots.of(roots or [Path.cwd()])
        self.workers = Workers()

    async def diagnose(
        self,
        granted: Granted,
        paths: Paths = NOTHING,
        symptoms: Symptoms = NOTHING,
        context: Package = None,
        detail: Detail = "summary",
    ) -> Told:
        given = {"paths": paths, "symptoms": symptoms, "context": context, "detail": detail}
        return await self._answer("diagnose", given, granted)

    async def explain_error(
        self,
        text: Annotated[str, Field(description="The error as printed: the whole traceback.")],
        symptoms: Symptoms = NOTHING,
        detail: Detail = "summary",
    ) -> Told:
        given = {"text": text, "symptoms": symptoms, "detail": detail}
        return await self._answer("explain_error", given)

    async def check_source(
        self,
        granted: Granted,
        paths: Annotated[
            list[str], Field(description="Python files or folders of them.", max_length=200)
        ] = NOTHING,
        detail: Detail = "summary",
    ) -> Told:
        return await self._answer("check_source", {"paths": paths, "detail": detail}, granted)

    async def route(
        self, question: Annotated[str, Field(description="The user's question, word for word.")]
    ) -> Told:
        return await self._answer("route", {"question": question})

    async def inspect_run(
        self,
        granted: Granted,
        paths: Paths = NOTHING,
        context: Package = None,
        detail: Detail = "summary",
    ) -> Told:
        given = {"paths": paths, "context": context, "detail": detail}
        return await self._answer("inspect_run", given, granted)

    async def extract_training_metrics(
        self,
        granted: Granted,
        paths: Paths = NOTHING,
        names: Annotated[
            list[str],
            Field(description="Canonical names or patterns: loss/train, layers/*/grad_norm."),
        ] = NOTHING,
        points: Annotated[int, Field(description="Per metric, about.", ge=1, le=1000)] = 100,
        context: Package = None,
    ) -> Told:
        given = {"paths": paths, "names": names, "points": points, "context": context}
        return await self._answer("extract_training_metrics", given, granted)

    async def visualize_loss_curve(
        self,
        granted: Granted,
        paths: Paths = NOTHING,
        metric: Annotated[
            str | None, Field(description="Draw this metric instead of the losses.")
        ] = None,
        context: Package = None,
    ) -> Told:
        given = {"paths": paths, "metric": metric, "context": context}
        return await self._answer("visualize_loss_curve", given, granted)

    async def analyze_architecture(
        self,
        granted: Granted,
        paths: Paths = NOTHING,
        context: Package = None,
        detail: Detail = "summary",
    ) -> Told:
        given = {"paths": paths, "context": context, "detail": detail}
        return await self._answer("analyze_architecture", given, granted)

    async def _answer(self, tool: str, given: Mapping[str, Any], granted: Any = None) -> Any:
        listed = await roots_in(granted)
        roots = Roots.of_uris(listed) if listed else self._roots
        folders = [str(folder) for folder in roots.folders]
        try:
            request = {"tool": tool, "roots": folders, "arguments": given}
            answer = await self.workers.ask(request, MAX_TIME_S)
        except TraindxError as error:
            raise ToolError(str(error)) from None
        if "error" in answer:
            raise ToolError(answer["error"])
        return _result(answer)


def _result(answer: Mapping[str, Any]) -> Any:
    data = answer["data"]
    content = [{"type": "text", "text": json.dumps(data, ensure_ascii=False)}]
    if answer["png"] is not None:
        content.insert(0, {"type": "image", "data": answer["png"], "mimeType": "image/png"})
    return CallToolResult.model_validate({"content": content, "structuredContent": data})


def make_server(roots: Sequence[Path] = ()) -> MCPServer[Any]:
    """Return the server; without roots of the client's it keeps to these, or to this folder."""
    desk = Desk(roots)

    @asynccontextmanager
    async def lifespan(server: MCPServer[Any]) -> AsyncIterator[None]:
        try:
            yield None
        finally:
            await desk.workers.close()

    server: MCPServer[Any] = MCPServer(
        "traindx", instructions=INSTRUCTIONS, lifespan=lifespan, log_level="WARNING", **VERSION
    )
    hints = {"readOnlyHint": True, "idempotentHint": True, "openWorldHint": False}
    for name, when in WHEN.items():
        read_only = ToolAnnotations.model_validate(hints)
        server.add_tool(getattr(desk, name), description=when, annotations=read_only)
    documents.add_to(server)
    return server
