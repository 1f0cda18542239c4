"""The files of the plugin: manifest, skills with their references, agent, commands, MCP server."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from traindx import __version__
from traindx.specialists.playbooks import Playbook, playbooks
from traindx.specialists.plugin.method import AS_COMMAND, NEVER, PHRASES, STEPS, WHEN

NAME = "traindx"
MAIN = "diagnose-training"
AGENT = "training-debugger"
MAX_DESCRIPTION = 1024  # of a skill, in the published specification
SUMMARY = "Says why a training run went wrong, shows the evidence, and proposes the smallest fix."

Files = dict[str, str]


@dataclass(frozen=True, slots=True)
class ReferencePages:
    """What the catalogue says, as pages: detectors by family, causes by specialist."""

    modes: str
    fixes: str
    detectors: Mapping[str, str]
    causes: Mapping[str, str]


_TOOL = f"mcp__plugin_{NAME}_{NAME}__"  # how Claude Code names what a server of a plugin offers

_COMMANDS = {
    "diagnose": (
        "Diagnose a training run from whatever it left behind",
        "[files or folders] [what you saw]",
        f"Use the {MAIN} skill on: $ARGUMENTS\n\n"
        "Without arguments, look at the current folder. What is no path is a symptom in the user's "
        "words. Call the `diagnose` tool of the traindx server, or run "
        "`traindx diagnose --format json` where there is no such tool.",
    ),
    "check": (
        "Check training code for faults before it runs",
        "[files or folders]",
        f"Use the {MAIN} skill on the training code in: $ARGUMENTS\n\n"
        "Without arguments, check the current folder. Call the `check_source` tool of the traindx "
        "server, or run `traindx check --format json`. Give every fault with its file and line, "
        "and its patch where there is one; change nothing that was not asked for.",
    ),
    "explain-error": (
        "Explain the error of a training run",
        "[the error text]",
        f"Use the {MAIN} skill on this error: $ARGUMENTS\n\n"
        "Call the `explain_error` tool of the traindx server on the whole text, or pipe it into "
        "`traindx explain -`. Without arguments, ask for the traceback from its first line on.",
    ),
}


def plugin_files(pages: ReferencePages) -> Files:
    """Return the plugin as texts by their path in its folder."""
    files = {
        ".claude-plugin/plugin.json": _json(_manifest()),
        ".mcp.json": _json({"mcpServers": {NAME: {"command": "traindx", "args": ["mcp"]}}}),
        "README.md": _readme(),
        f"agents/{AGENT}.md": _agent(),
    }
    for name, (description, hint, body) in _COMMANDS.items():
        front = {"description": description, "argument-hint": hint}
        files[f"commands/{name}.md"] = f"{_front(front)}\n{body}\n"
    files |= {f"skills/{path}": text for path, text in skill_files(pages).items()}
    return dict(sorted(files.items()))


def skill_files(pages: ReferencePages) -> Files:
    """Return the skills alone, each in a folder of its name, for any assistant that knows them."""
    files = {f"{MAIN}/SKILL.md": _main_skill(pages)}
    references = {
        "failure-modes": pages.modes,
        "fix-templates": pages.fixes,
        "checklist": checklist_page(playbooks()),
        **{f"detectors-{name}": page for name, page in pages.detectors.items()},
    }
    files |= {f"{MAIN}/references/{name}.md": page for name, page in references.items()}
    for playbook in playbooks():
        causes = pages.causes.get(playbook.name)
        files[f"{playbook.name}/SKILL.md"] = _specialist_skill(playbook, causes is not None)
        if causes is not None:
            files[f"{playbook.name}/references/causes.md"] = causes
    return dict(sorted(files.items()))


def checklist_page(playbooks: Iterable[Playbook]) -> str:
    """Return what to do first and what to gather, for each specialist."""
    parts = ["# Checklist", "What to do first and what to gather, by the kind of trouble."]
    for playbook in playbooks:
        parts += [
            f"## {playbook.title}",
            playbook.description,
            "\n".join(f"- [ ] {step}" for step in playbook.first_steps),
            "Gather:",
            "\n".join(f"- [ ] {wanted}" for wanted in playbook.artifacts_wanted),
        ]
    return _page(parts)


def _manifest() -> dict[str, Any]:
    return {
        "name": NAME,
        "version": __version__,
        "description": SUMMARY,
        "author": {"name": "The traindx developers"},
        "license": "Apache-2.0",
        "keywords": ["deep learning", "training", "debugging", "diagnosis", "pytorch"],
    }


def _main_skill(pages: ReferencePages) -> str:
    spoken = ", ".join(f'"{phrase}"' for phrase in PHRASES)
    description = (
        "Finds out why a neural-network training run went wrong, on evidence that can be looked "
        "up, and proposes the smallest fix and how to verify it. Use when a loss diverges, is NaN, "
        "stalls or overfits, outputs collapse, a run crashes, hangs, runs out of memory or is "
        f"slow, when training code is to be checked, and for requests such as {spoken}."
    )
    parts = [
        _skill_front(MAIN, description),
        "# Diagnose a training run",
        "The `traindx` server gives you the tools below. Where it is not connected, the command "
        "`traindx` does the same (`pip install traindx`).",
        "## The way to work",
        "\n".join(f"{i}. **{name}.** {text}" for i, (name, text) in enumerate(STEPS, start=1)),
        "## What never to do",
        "\n".join(f"- {rule}" for rule in NEVER),
        "## Tools",
        "\n".join(["| tool | what for | as a command |", "|---|---|---|", *_tools()]),
        "## Specialists",
        "A root cause names its `specialist`, and `route` does too. Read that playbook, and no "
        "other, when the diagnosis leaves something open.",
        "\n".join(f"- [{p.title}](../{p.name}/SKILL.md)" for p in playbooks()),
        "## References",
        "\n".join(_references(pages)),
    ]
    return _page(parts)


def _tools() -> Iterator[str]:
    """The protocol tells the rest of when to use a tool."""
    for name, when in WHEN.items():
        yield f"| `{name}` | {when.split('. ')[0]} | `{AS_COMMAND[name]}` |"


def _references(pages: ReferencePages) -> Iterator[str]:
    yield "- [Checklist](references/checklist.md): what to do first and what to gather"
    yield "- [Failure modes](references/failure-modes.md): every cause and what finds it"
    yield "- [Fix templates](references/fix-templates.md): the smallest change for each cause"
    for name in pages.detectors:
        title = name.replace("-", " ")
        yield f"- [Detectors: {title}](references/detectors-{name}.md)"


def _specialist_skill(playbook: Playbook, has_causes: bool) -> str:
    parts = [
        _skill_front(playbook.name, playbook.description),
        playbook.body,
        "## For an assistant",
        f"Work as the [{MAIN}](../{MAIN}/SKILL.md) skill says: the tools first, evidence with "
        "every claim, one change at a time.",
    ]
    if has_causes:
        parts.append(
            "The causes that this specialist treats, with their remedies: "
            "[causes](references/causes.md)."
        )
    return _page(parts)


def _skill_front(name: str, description: str) -> str:
    if len(description) > MAX_DESCRIPTION:
        raise ValueError(f"the description of {name} is longer than {MAX_DESCRIPTION} characters")
    front = {
        "name": name,
        "description": description,
        "license": "Apache-2.0",
        "metadata": {"version": __version__},
    }
    return _front(front)


def _agent() -> str:
    front = {
        "name": AGENT,
        "description": (
            "Diagnoses neural-network training runs. Use it when a training run failed, diverged, "
            "stalled, collapsed or is slow and the answer needs logs, metrics, code or checkpoints "
            "to be gone through. It changes no file; it returns causes with evidence, the smallest "
            "fix and how to verify it."
        ),
        "tools": ", ".join(["Read", "Grep", "Glob", "Skill", *(f"{_TOOL}{name}" for name in WHEN)]),
    }
    parts = [
        _front(front),
        "You find out why training runs go wrong. You believe evidence, not stories.",
        f"Follow the {MAIN} skill step by step. Return:",
        "1. the status and the one-sentence summary of the diagnosis;\n"
        "2. each root cause with its confidence, the evidence (artifact, locator, value) and what "
        "speaks against it;\n"
        "3. the smallest fix, as a patch where there is one, and the effect to expect;\n"
        "4. how to verify it, and what to do if it fails;\n"
        "5. what was not checked, and the artifact that would allow it.",
        "If you disagree with the diagnosis of the tool, say so beside it and cite what it missed; "
        "never replace it silently.",
        "\n".join(f"- {rule}" for rule in NEVER),
    ]
    return _page(parts)


def _readme() -> str:
    parts = [
        f"# {NAME}",
        SUMMARY,
        "This plugin gives a coding assistant the diagnosis as tools, the method and the playbooks "
        "as skills, and an agent that goes through a run by itself.",
        "```sh\npip install 'traindx[mcp]'   # the server that .mcp.json starts\n"
        "claude --plugin-dir .        # try it in this folder\n```",
        "\n".join(f"- `/{NAME}:{name}`: {about}" for name, (about, _, _) in _COMMANDS.items()),
        f"Written by `traindx skills export`, version {__version__}. Export it again rather than "
        "edit it.",
    ]
    return _page(parts)


def _front(keys: Mapping[str, Any]) -> str:
    """Return front matter; JSON texts are YAML that no character can break out of."""
    lines = []
    for key, value in keys.items():
        if isinstance(value, Mapping):
            lines.append(f"{key}:")
            lines += [f"  {inner}: {json.dumps(text)}" for inner, text in value.items()]
        else:
            lines.append(f"{key}: {_scalar(value)}")
    return "\n".join(["---", *lines, "---"]) + "\n"


def _scalar(value: str) -> str:
    is_plain = value.replace("-", "").replace(".", "").isalnum()
    return value if is_plain else json.dumps(value, ensure_ascii=False)


def _json(value: Mapping[str, Any]) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def _page(parts: Sequence[str]) -> str:
    return "\n\n".join(part.strip() for part in parts) + "\n"
