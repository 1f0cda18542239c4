"""The plugin for coding assistants: in the published layout, whole, the same every time."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path, PurePosixPath
from threading import Thread
from typing import Any

import pytest
import yaml

from traindx import __version__, api
from traindx.cli.main import main
from traindx.specialists.playbooks import NAMES
from traindx.specialists.plugin.method import PHRASES, STEPS, WHEN
from traindx.specialists.plugin.plugin_files import AGENT, MAIN

# the published rules for skills and plugins
NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
MAX_NAME, MAX_DESCRIPTION, MAX_COMPATIBILITY = 64, 1024, 500
SKILL_KEYS = {"name", "description", "license", "compatibility", "metadata", "allowed-tools"}
RESERVED = ("anthropic", "claude")
MAX_LINES = 500  # beyond that a skill belongs into its references

_LINK = re.compile(r"(?<!!)\[[^\]\n]*\]\(([^)\s]+)\)")
_FENCED = re.compile(r"^```.*?^```", re.M | re.S)
_CODE = re.compile(r"`[^`\n]*`")


@pytest.fixture(scope="module")
def files() -> dict[str, str]:
    return api.plugin_files()


def front_of(text: str) -> dict[str, Any]:
    assert text.startswith("---\n"), text[:80]
    _, front, _ = text.split("---\n", 2)
    told = yaml.safe_load(front)
    assert isinstance(told, dict)
    return told


def skills_in(files: dict[str, str]) -> dict[str, str]:
    return {p.split("/")[1]: t for p, t in files.items() if p.endswith("/SKILL.md")}


def anchors_in(text: str) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", _FENCED.sub("", text), re.M)
    return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}


def broken_links(files: dict[str, str]) -> Iterator[str]:
    for path, text in files.items():
        for target in _LINK.findall(_CODE.sub("", _FENCED.sub("", text))):
            if re.match(r"[a-z]+:", target):
                continue
            place, _, anchor = target.partition("#")
            found = path if not place else os.path.normpath(PurePosixPath(path).parent / place)
            if found not in files or (anchor and anchor not in anchors_in(files[found])):
                yield f"{path}: {target}"


def test_the_manifest_names_the_plugin(files: dict[str, str]) -> None:
    manifest = json.loads(files[".claude-plugin/plugin.json"])
    assert NAME.fullmatch(manifest["name"]) and manifest["version"] == __version__
    assert manifest["description"] and manifest["author"]["name"]
    inside = [p for p in files if p.startswith(".claude-plugin/")]
    assert inside == [".claude-plugin/plugin.json"]  # everything else lies at the root


def test_every_file_is_where_it_is_looked_for(files: dict[str, str]) -> None:
    places = (
        r"\.claude-plugin/plugin\.json|\.mcp\.json|README\.md|agents/[a-z-]+\.md|commands/[a-z-]+\.md"
        r"|skills/[a-z-]+/SKILL\.md|skills/[a-z-]+/references/[a-z-]+\.md"
    )
    assert [p for p in files if not re.fullmatch(places, p)] == []
    assert set(skills_in(files)) == {MAIN, *NAMES}


def test_skills_follow_the_specification(files: dict[str, str]) -> None:
    for folder, text in skills_in(files).items():
        front = front_of(text)
        assert set(front) <= SKILL_KEYS
        assert front["name"] == folder and NAME.fullmatch(folder) and len(folder) <= MAX_NAME
        assert not any(word in folder for word in RESERVED)
        assert 1 <= len(front["description"].strip()) <= MAX_DESCRIPTION
        assert not re.search(r"[<>]", front["description"])
        assert text.count("\n") <= MAX_LINES, folder


def test_the_words_that_wake_the_skill_are_in_its_description(files: dict[str, str]) -> None:
    description = front_of(files[f"skills/{MAIN}/SKILL.md"])["description"]
    assert [phrase for phrase in PHRASES if phrase not in description] == []
    for spoken in ("debug my training run", "why is my loss diverging", "not learning anything"):
        assert spoken in PHRASES


def test_the_skill_teaches_the_method_and_names_every_tool(files: dict[str, str]) -> None:
    text = files[f"skills/{MAIN}/SKILL.md"]
    at = [text.index(f"**{name}.**") for name, _ in STEPS]
    assert at == sorted(at) and "Never guess" in text
    assert [tool for tool in WHEN if f"`{tool}`" not in text] == []


def test_agents_and_commands_have_their_front_matter(files: dict[str, str]) -> None:
    agent = front_of(files[f"agents/{AGENT}.md"])
    assert agent["name"] == AGENT and NAME.fullmatch(AGENT) and agent["description"]
    allowed = agent["tools"].split(", ")
    assert not {"Write", "Edit", "NotebookEdit", "Bash"} & set(allowed)
    assert {f"mcp__plugin_traindx_traindx__{tool}" for tool in WHEN} < set(allowed)
    commands = [text for path, text in files.items() if path.startswith("commands/")]
    assert commands
    for text in commands:
        assert front_of(text)["description"] and "$ARGUMENTS" in text


def test_the_server_is_started_by_our_own_command(files: dict[str, str]) -> None:
    servers = json.loads(files[".mcp.json"])["mcpServers"]
    assert servers == {"traindx": {"command": "traindx", "args": ["mcp"]}}


def test_no_link_is_broken(files: dict[str, str]) -> None:
    assert list(broken_links(files)) == []
    assert list(broken_links(api.plugin_files(plain=True))) == []


def test_every_reference_is_linked_from_its_skill(files: dict[str, str]) -> None:
    for path in files:
        if "/references/" in path:
            skill = files[f"{path.split('/references/')[0]}/SKILL.md"]
            assert f"references/{path.rsplit('/', 1)[1]}" in skill, path


def test_the_export_is_the_same_every_time(tmp_path: Path, files: dict[str, str]) -> None:
    program = "import sys; from traindx.cli.main import main; sys.exit(main(sys.argv[1:]))"
    for seed in ("1", "2"):
        subprocess.run(
            [sys.executable, "-c", program, "skills", "export", str(tmp_path / seed)],
            env={**os.environ, "PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
        )
        found = {
            p.relative_to(tmp_path / seed).as_posix(): p.read_text(encoding="utf-8")
            for p in (tmp_path / seed).rglob("*")
            if p.is_file()
        }
        assert found == files


def test_plain_skills_for_other_assistants(tmp_path: Path) -> None:
    assert main(["skills", "export", str(tmp_path), "--plain"]) == 0
    assert {p.name for p in tmp_path.iterdir()} == {MAIN, *NAMES}
    assert all((tmp_path / name / "SKILL.md").is_file() for name in (MAIN, *NAMES))


def test_a_folder_with_other_files_is_left_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "mine"
    assert main(["skills", "export", str(folder)]) == 0
    assert main(["skills", "export", str(folder)]) == 0  # its own files again
    (folder / "skills" / "notes.txt").write_text("mine")
    (folder / "README.md").write_text("changed")
    assert main(["skills", "export", str(folder)]) == 2
    assert "skills/notes.txt" in capsys.readouterr().err
    assert (folder / "README.md").read_text() == "changed"
    assert main(["skills", "export", str(folder), "--force"]) == 0
    assert (folder / "skills" / "notes.txt").read_text() == "mine"


def test_a_place_that_cannot_be_written_is_one_message(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    assert main(["skills", "export", str(tmp_path / "file")]) == 2
    assert capsys.readouterr().err.count("\n") == 1


class Refusing(BaseHTTPRequestHandler):
    """A Messages API on loopback that answers nothing: the plugin is loaded before it is asked."""

    def do_POST(self) -> None:
        told = {"type": "error", "error": {"type": "invalid_request_error", "message": "no"}}
        self.send_response(400)
        self.send_header("content-type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps(told).encode())

    def log_message(self, *arguments: Any) -> None:
        pass


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Callable[..., str]]:
    """Run the real Claude Code of the agent SDK, in a home of its own and without a network."""
    sdk = pytest.importorskip("claude_agent_sdk")
    found = Path(sdk.__file__).parent / "_bundled" / "claude"
    if not found.is_file():
        pytest.skip("this SDK does not bundle its program")
    home = tmp_path / "home"
    home.mkdir()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Refusing)
    Thread(target=server.serve_forever, daemon=True).start()
    environment = {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(home),
        "CLAUDE_CONFIG_DIR": str(home),
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{server.server_port}",
        "ANTHROPIC_API_KEY": "none",
    }

    def run(*arguments: str) -> str:
        return subprocess.run(
            [str(found), *arguments],
            cwd=home,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        ).stdout

    yield run
    server.shutdown()
    server.server_close()


def test_claude_code_accepts_the_manifest_and_loads_every_part(
    program: Callable[..., str], tmp_path: Path
) -> None:
    folder = str(tmp_path / "plugin")
    main(["skills", "export", folder])
    report = json.loads(program("plugin", "validate", "--strict", "--json", folder))
    assert report["success"], report  # it looks at the manifest only; loading shows the rest
    options = ("--output-format", "stream-json", "--verbose")
    first = program("--plugin-dir", folder, "-p", "hello", *options).splitlines()[0]
    loaded = json.loads(first)
    assert {f"traindx:{name}" for name in (MAIN, *NAMES)} <= set(loaded["skills"])
    assert f"traindx:{AGENT}" in loaded["agents"]
    assert {"traindx:diagnose", "traindx:check"} <= set(loaded["slash_commands"])
    (server,) = [s for s in loaded["mcp_servers"] if "traindx" in s["name"]]
    assert server["status"] != "failed"
    if server["status"] == "connected":  # on a slow machine it is still starting by then
        allowed = front_of((tmp_path / "plugin" / "agents" / f"{AGENT}.md").read_text())["tools"]
        named = {tool for tool in allowed.split(", ") if tool.startswith("mcp__")}
        assert named == {tool for tool in loaded["tools"] if "traindx" in tool}
