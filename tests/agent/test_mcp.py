"""The server over stdio, as assistants meet it: the real client, a real process."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp.server.mcpserver", reason="the client of the second SDK is used here")

import anyio
from mcp import Client, types
from mcp.client.stdio import StdioServerParameters
from mcp.shared.exceptions import MCPError

from traindx.agent.workers import GRACE_S, Workers
from traindx.errors import TraindxError
from traindx.specialists.playbooks import NAMES
from traindx.specialists.plugin.method import WHEN

LOG = "".join(f"step {i} loss {2.0 / (i + 1):.4f}\n" for i in range(50))
ERAS = ("legacy", "auto")
PATIENCE_S = 60.0

# a format whose reader does what a call must survive
PLUGIN = """
import os, sys, time
from pathlib import Path
from traindx.model.run import Run
from traindx.registry import reader

def sniff(path, head):
    return 1.0 if path.suffix == ".odd" else 0.0

@reader("odd", sniff)
def read(path):
    if path.stem == "sleepy":
        path.with_name(f"pid-{os.getpid()}").mkdir()
        time.sleep(600)
    if path.stem == "deadly":
        os._exit(9)
    if path.stem == "chatty":
        print("this is no message of the protocol")
        os.write(1, b"and this is not one either\\n")
        sys.stdin.read()
    if path.stem == "broken":
        raise RuntimeError("a reader of somebody else's")
    return Run(name=path.stem)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "granted"
    made.mkdir()
    (made / "train.log").write_text(LOG)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "train.log").write_text(LOG)
    return made


@pytest.fixture
def plugin(tmp_path: Path) -> dict[str, str]:
    place = tmp_path / "site"
    about = place / "odd_reader-1.0.dist-info"
    about.mkdir(parents=True)
    (place / "odd_reader.py").write_text(PLUGIN)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: odd-reader\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[traindx.readers]\nodd = odd_reader\n")
    return {"PYTHONPATH": str(place)}


def command(*arguments: str, cwd: Path, env: dict[str, str] | None = None) -> StdioServerParameters:
    return StdioServerParameters(
        command=sys.executable,
        args=["-m", "traindx", "mcp", *arguments],
        cwd=str(cwd),
        env={**os.environ, "OMP_NUM_THREADS": "1", **(env or {})},
    )


def granting(*folders: Path) -> Callable[[Any], Any]:
    async def roots(context: Any) -> types.ListRootsResult:
        return types.ListRootsResult(roots=[types.Root(uri=f.as_uri()) for f in folders])

    return roots


@asynccontextmanager
async def connected(server: StdioServerParameters, **options: Any) -> AsyncIterator[Client]:
    with anyio.fail_after(PATIENCE_S):
        async with Client(server, **options) as client:
            yield client


def text_of(result: types.CallToolResult) -> str:
    return "".join(c.text for c in result.content if isinstance(c, types.TextContent))


async def call(client: Client, tool: str, **arguments: Any) -> types.CallToolResult:
    return await client.call_tool(tool, arguments)


async def refusal_of(client: Client, tool: str, **arguments: Any) -> str:
    result = await call(client, tool, **arguments)
    assert result.is_error, result
    return text_of(result)


@pytest.mark.parametrize("era", ERAS)
def test_tools_answer_and_keep_to_the_clients_roots(era: str, folder: Path) -> None:
    outside = folder.parent / "other" / "train.log"

    async def scenario() -> None:
        server = command(cwd=folder.parent)
        async with connected(server, mode=era, list_roots_callback=granting(folder)) as client:
            listed = (await client.list_tools()).tools
            assert {t.name for t in listed} == set(WHEN)
            assert all(t.description and t.output_schema for t in listed)
            result = await call(client, "diagnose", paths=["train.log"])
            assert not result.is_error and result.structured_content is not None
            assert result.structured_content == json.loads(text_of(result))
            assert result.structured_content["root_causes"] == []
            refused = await refusal_of(client, "diagnose", paths=[str(outside)])
            assert "outside the folders that were granted" in refused and str(folder) in refused
            assert "'..'" in await refusal_of(client, "inspect_run", paths=["../other/train.log"])
            drawn = await call(client, "visualize_loss_curve")
            images = [c for c in drawn.content if isinstance(c, types.ImageContent)]
            charted = (drawn.structured_content or {}).get("chart")
            assert charted or base64.b64decode(images[0].data).startswith(b"\x89PNG")

    asyncio.run(scenario())


def test_without_roots_the_working_folder_or_the_option_counts(folder: Path) -> None:
    other = folder.parent / "other"

    async def scenario() -> None:
        async with connected(command(cwd=folder)) as client:
            assert not (await call(client, "inspect_run")).is_error
            assert "granted" in await refusal_of(client, "inspect_run", paths=[str(other)])
        async with connected(command("--root", str(other), cwd=folder)) as client:
            assert not (await call(client, "inspect_run", paths=[str(other)])).is_error
            assert "granted" in await refusal_of(client, "inspect_run", paths=[str(folder)])
        nowhere = granting(folder / "gone")
        async with connected(command(cwd=folder), list_roots_callback=nowhere) as client:
            assert "granted" in await refusal_of(client, "inspect_run", paths=["train.log"])

    asyncio.run(scenario())


def test_bad_arguments_and_damaged_files_are_errors_and_nothing_more(folder: Path) -> None:
    (folder / "cut.safetensors").write_bytes(b"\xff\xff\x00\x00\x00\x00\x00\x00{")
    (folder / "cut.pt").write_bytes(b"PK\x03\x04" + os.urandom(64))
    (folder / "noise.log").write_bytes(os.urandom(4096))

    async def scenario() -> None:
        async with connected(command(cwd=folder)) as client:
            for arguments in (
                {"paths": 5},
                {"detail": "everything"},
                {"paths": ["-"]},
                {"paths": [""]},
            ):
                assert await refusal_of(client, "diagnose", **arguments)
            assert await refusal_of(client, "explain_error")
            assert await refusal_of(client, "route", question="")
            assert "nope" in await refusal_of(client, "nope")
            assert "does not exist" in await refusal_of(client, "diagnose", paths=["gone.log"])
            for name in ("cut.safetensors", "cut.pt", "noise.log"):
                result = await call(client, "diagnose", paths=[name])
                assert "bug of traindx" not in text_of(result)
            assert not (await call(client, "diagnose", paths=["train.log"])).is_error

    asyncio.run(scenario())


async def gone(pid: int) -> bool:
    with anyio.fail_after(PATIENCE_S), suppress(OSError):
        while Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z":
            await asyncio.sleep(0.05)
    return True


async def sleeper_in(folder: Path) -> int:
    with anyio.fail_after(PATIENCE_S):
        while not (found := list(folder.glob("pid-*"))):
            await asyncio.sleep(0.05)
    found[0].rmdir()
    return int(found[0].name.removeprefix("pid-"))


@pytest.mark.parametrize("era", ERAS)
def test_a_slow_call_holds_up_no_other_and_can_be_cancelled(
    era: str, folder: Path, plugin: dict[str, str]
) -> None:
    (folder / "sleepy.odd").write_text("x")

    async def scenario() -> None:
        async with connected(command(cwd=folder, env=plugin), mode=era) as client:
            slow = asyncio.create_task(call(client, "diagnose", paths=["sleepy.odd"]))
            worker = await sleeper_in(folder)
            quick = [call(client, "diagnose", paths=["train.log"]) for _ in range(2)]
            assert [r.is_error for r in await asyncio.gather(*quick)] == [False, False]
            assert not slow.done()
            slow.cancel()
            with suppress(asyncio.CancelledError):
                await slow
            assert await gone(worker)
            assert not (await call(client, "diagnose", paths=["train.log"])).is_error

    asyncio.run(scenario())


def test_a_worker_that_dies_takes_nothing_down(folder: Path, plugin: dict[str, str]) -> None:
    for name in ("deadly", "broken"):
        (folder / f"{name}.odd").write_text("x")

    async def scenario() -> None:
        async with connected(command(cwd=folder, env=plugin)) as client:
            assert "died" in await refusal_of(client, "inspect_run", paths=["deadly.odd"])
            assert "RuntimeError" in await refusal_of(client, "inspect_run", paths=["broken.odd"])
            assert not (await call(client, "inspect_run", paths=["train.log"])).is_error

    asyncio.run(scenario())


def test_resources(folder: Path) -> None:
    async def scenario() -> None:
        async with connected(command(cwd=folder)) as client:
            listed = {str(r.uri) for r in (await client.list_resources()).resources}
            assert {f"traindx://playbooks/{name}" for name in NAMES} < listed
            for uri, part in (
                ("traindx://playbooks/debugging-techniques", "traindx"),
                ("traindx://causes/lr-too-high", "## What to do"),
                ("traindx://detectors/loss-divergence", "## When it is wrong"),
                ("traindx://failure-modes", "`lr-too-high`"),
                ("traindx://causes", "`lr-too-high`"),
            ):
                content = (await client.read_resource(uri)).contents[0]
                assert isinstance(content, types.TextResourceContents) and part in content.text
            with pytest.raises(MCPError, match="lr-too-high"):
                await client.read_resource("traindx://causes/lr-to-high")

    asyncio.run(scenario())


def rpc(number: int, method: str, params: dict[str, Any]) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params})


@contextmanager
def greeted(folder: Path, env: dict[str, str]) -> Iterator[subprocess.Popen[str]]:
    """Start the server and shake hands with it line by line; before that comes a line of noise."""
    server = command(cwd=folder, env=env)
    hello = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    }
    with subprocess.Popen(
        [server.command, *server.args],
        cwd=folder,
        env=server.env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        send(process, "this is no JSON")
        send(process, rpc(1, "initialize", hello))
        send(process, '{"jsonrpc": "2.0", "method": "notifications/initialized"}')
        yield process


def send(process: subprocess.Popen[str], line: str) -> None:
    assert process.stdin is not None
    process.stdin.write(f"{line}\n")
    process.stdin.flush()


def inspection_of(name: str) -> str:
    return rpc(2, "tools/call", {"name": "inspect_run", "arguments": {"paths": [name]}})


def test_standard_output_belongs_to_the_protocol(folder: Path, plugin: dict[str, str]) -> None:
    (folder / "chatty.odd").write_text("x")
    with greeted(folder, plugin) as process:
        assert process.stdin is not None and process.stdout is not None
        send(process, inspection_of("chatty.odd"))
        answers: list[dict[str, Any]] = []
        while not any(a.get("id") == 2 for a in answers):
            answers.append(json.loads(process.stdout.readline()))
        process.stdin.close()
        assert process.stdout.read() == ""
        assert process.wait(PATIENCE_S) == 0


def test_workers_end_with_a_server_that_is_killed(folder: Path, plugin: dict[str, str]) -> None:
    (folder / "sleepy.odd").write_text("x")
    with greeted(folder, plugin) as process:
        send(process, inspection_of("sleepy.odd"))
        worker = asyncio.run(sleeper_in(folder))
        process.kill()
        assert asyncio.run(gone(worker))


def test_a_call_beyond_its_time_is_ended() -> None:
    async def scenario() -> None:
        workers = Workers()
        with pytest.raises(TraindxError, match="longer"):
            await workers.ask({"tool": "route", "roots": [], "arguments": {}}, -GRACE_S)

    asyncio.run(scenario())


def run_without(*modules: str, arguments: list[str]) -> subprocess.CompletedProcess[str]:
    blocked = "; ".join(f"sys.modules[{name!r}] = None" for name in modules)
    program = f"import sys; {blocked or 'pass'}; from traindx.cli.main import main; sys.exit(main({arguments!r}))"
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )


def test_without_the_extra_it_says_what_to_install() -> None:
    done = run_without("mcp", arguments=["mcp"])
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.count("\n") == 1 and "pip install 'traindx[mcp]'" in done.stderr


def test_a_root_that_is_no_folder_is_misuse() -> None:
    done = run_without(arguments=["mcp", "--root", "no-such-folder"])
    assert done.returncode == 2 and "no-such-folder" in done.stderr
