"""The conversation with the model, through claude-agent-sdk: read-only by construction, bounded.

The model's program gets none of its own tools, no settings, no hooks, no servers but ours, an empty
working folder, a home of its own that is thrown away, and of the environment only what it needs to
reach the service.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from traindx.agent.artifact_access import Tool, answered
from traindx.report.words import clean

if TYPE_CHECKING:
    from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient, ResultMessage

SERVER = "traindx"
KEYS = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN")
RETRIES = "2"
HUSHING_S = 1.0
_NEEDED = frozenset(
    {*KEYS, "ANTHROPIC_BASE_URL", "ANTHROPIC_CUSTOM_HEADERS", "PATH", "LANG", "TZ", "SYSTEMROOT",
     "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR",
     "NODE_EXTRA_CA_CERTS"}
)  # fmt: skip
_OFF = ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "CLAUDE_CODE_DISABLE_CLAUDE_MDS",
        "CLAUDE_CODE_DISABLE_ATTACHMENTS", "CLAUDE_CODE_DISABLE_FILE_MENTIONS",
        "CLAUDE_CODE_DISABLE_BUNDLED_SKILLS", "DISABLE_AUTOUPDATER",
        "DISABLE_TELEMETRY")  # fmt: skip


@dataclass(slots=True)
class Spent:
    """What a conversation took."""

    turns: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float = 0.0
    duration_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back to one message: the text of an answer, or why there is none."""

    text: str = ""
    problem: str = ""
    is_out_of_turns: bool = False


@dataclass(slots=True)
class Conversation:
    """One conversation: who is asked, with which tools, within which limits, and what it took."""

    system: str
    tools: tuple[Tool, ...]
    max_turns: int
    model: str | None = None
    tell: Callable[[str], None] = lambda label: None
    spent: Spent = field(default_factory=Spent)
    refused: list[str] = field(default_factory=list)
    model_used: str = ""
    _seen: set[str] = field(default_factory=set)

    @property
    def own_names(self) -> list[str]:
        return [f"mcp__{SERVER}__{tool.name}" for tool in self.tools]

    @property
    def turns_left(self) -> int:
        return self.max_turns - self.spent.turns

    async def ask(self, client: ClaudeSDKClient, message: str, *, once: bool = False) -> Reply:
        """Send a message and wait for the answer; with `once`, a call of a tool ends it."""
        from claude_agent_sdk import AssistantMessage, ResultMessage, ToolUseBlock

        await client.query(message)
        async for heard in client.receive_response():
            if isinstance(heard, AssistantMessage):
                self._count(str(heard.message_id), heard.model)
                called = [b.name for b in heard.content if isinstance(b, ToolUseBlock)]
                self._note_calls(called)
                if called and once:
                    return Reply(problem="it called a tool where an answer was due")
            elif isinstance(heard, ResultMessage):
                return self._result(heard)
        return Reply(problem="the conversation ended without an answer")

    def _count(self, message_id: str, model: str) -> None:
        if model == "<synthetic>" or message_id in self._seen:
            return
        self._seen.add(message_id)
        self.spent.turns += 1
        self.model_used = model

    def _note_calls(self, names: list[str]) -> None:
        for name in names:
            if name in self.own_names:
                self.tell(
                    f"with the specialist, turn {self.spent.turns}: {name.rsplit('__', 1)[-1]}"
                )
            elif name not in self.refused:
                self.refused.append(clean(name, 60))

    def _result(self, result: ResultMessage) -> Reply:
        usage: Mapping[str, Any] = result.usage or {}
        cached = ("cache_creation_input_tokens", "cache_read_input_tokens")
        tokens = [usage.get(name) or 0 for name in ("input_tokens", *cached)]
        self.spent.input_tokens += sum(tokens)
        self.spent.output_tokens += usage.get("output_tokens") or 0
        self.spent.cost_usd = result.total_cost_usd or self.spent.cost_usd  # of the whole session
        if result.subtype == "error_max_turns":
            return Reply(problem="its turns were used up", is_out_of_turns=True)
        if result.is_error:
            told = result.result or "; ".join(result.errors or []) or result.subtype
            return Reply(problem=clean(told, 300))
        return Reply(text=result.result or "")


def has_key(environment: Mapping[str, str]) -> bool:
    """Tell whether there is anything to sign in with."""
    return any(environment.get(key) for key in KEYS)


@contextmanager
def prepared(talk: Conversation) -> Iterator[ClaudeAgentOptions]:
    """Make the place in which the model's program runs, and remove it afterwards."""
    with TemporaryDirectory(prefix="traindx-", ignore_cleanup_errors=True) as home:
        folders = {name: Path(home, name) for name in ("home", "config", "empty")}
        for folder in folders.values():
            folder.mkdir()
        yield options_of(talk, folders)


def options_of(talk: Conversation, folders: Mapping[str, Path]) -> ClaudeAgentOptions:
    """Return options under which nothing can be done but call our tools."""
    from claude_agent_sdk import ClaudeAgentOptions, create_sdk_mcp_server

    own = [_exposed(tool) for tool in talk.tools]
    return ClaudeAgentOptions(
        tools=[],
        allowed_tools=talk.own_names,
        can_use_tool=_denied,
        system_prompt=talk.system,
        mcp_servers={SERVER: create_sdk_mcp_server(SERVER, tools=own)},
        strict_mcp_config=True,
        setting_sources=[],
        skills=[],
        permission_mode="default",
        verbatim_prompts=True,  # else "@/a/path" in a log would be read and sent
        max_turns=max(talk.max_turns - 1, 1),  # the last one is kept for the answer
        model=talk.model,
        cwd=folders["empty"],
        env=reduced(os.environ, folders),
        stderr=lambda line: None,
    )


def reduced(environment: Mapping[str, str], folders: Mapping[str, Path]) -> dict[str, str]:
    """Return an environment that blanks everything but what reaching the service needs.

    The SDK adds to what it inherits and takes nothing away, so the rest is set to nothing.
    """
    blanked = {name: "" for name in environment if name.upper() not in _NEEDED}
    own = {"HOME": "home", "USERPROFILE": "home", "CLAUDE_CONFIG_DIR": "config", "TMPDIR": "home"}
    return {
        **blanked,
        **{name: str(folders[where]) for name, where in own.items()},
        **dict.fromkeys(_OFF, "1"),
        "CLAUDE_CODE_MAX_RETRIES": RETRIES,
    }


async def _denied(name: str, given: dict[str, Any], context: Any) -> Any:
    from claude_agent_sdk import PermissionResultDeny

    return PermissionResultDeny(message=f"{name} is not available: this session can only look")


def _exposed(tool: Tool) -> Any:
    from claude_agent_sdk import tool as sdk_tool

    schema = {
        "type": "object",
        "properties": {name: dict(kind) for name, kind in tool.properties.items()},
        "required": list(tool.required),
        "additionalProperties": False,
    }

    async def call(given: dict[str, Any]) -> dict[str, Any]:
        text, is_error = answered(tool, given)
        return {"content": [{"type": "text", "text": text}], "is_error": is_error}

    return sdk_tool(tool.name, tool.description, schema)(call)


@contextmanager
def without_shadow_warning() -> Iterator[None]:
    """Silence the SDK's remark that allowed tools are not asked about: that is what we want."""
    from claude_agent_sdk import CanUseToolShadowedWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CanUseToolShadowedWarning)
        yield


async def hush(client: ClaudeSDKClient) -> None:
    """Ask the model's program to stop, so that it need not be waited for."""
    import anyio
    from claude_agent_sdk import ClaudeSDKError

    with suppress(ClaudeSDKError), anyio.move_on_after(HUSHING_S):
        await client.interrupt()


@contextmanager
def timed(spent: Spent) -> Iterator[None]:
    """Note how long something took."""
    started = time.monotonic()
    try:
        yield
    finally:
        spent.duration_s = time.monotonic() - started
