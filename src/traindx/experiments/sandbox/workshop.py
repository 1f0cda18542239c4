"""The workshop: reruns a command on copies of its project, within limits, and cleans up."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path
from types import TracebackType

from traindx.errors import CannotRerun
from traindx.experiments.changes import Change, Limits, Rerun
from traindx.experiments.interventions.guard.mirror import is_below
from traindx.experiments.sandbox import commands, rerun_environment, sideeffects
from traindx.experiments.sandbox.attempt import MARK, Attempt
from traindx.experiments.sandbox.commands import PYTHON
from traindx.experiments.sandbox.fork_server import ForkServer, is_possible, script_of
from traindx.experiments.sandbox.project_folders import TEMPORARY, is_shared, roots_of, scripts_of
from traindx.experiments.sandbox.rerun_environment import Sandbox
from traindx.experiments.sandbox.shadow import Shadow, apply_patch

MOST_NOTES = 100
LONGEST_CHECK_S = 60.0
GUARDED, REDIRECTED = "guarded", "redirected"
_QUIET = (GUARDED, REDIRECTED)


class Workshop:
    """A place to rerun a command in; inside `with`, its files are there.

    `written_since_s` is when the run began that is looked into: checkpoints and output folders that
    it wrote are not copied, for it did not find them either.
    """

    def __init__(
        self,
        command: Sequence[str],
        cwd: Path,
        environ: Mapping[str, str],
        tell: Callable[[str], None] = lambda _: None,
        *,
        written_since_s: float | None = None,
    ) -> None:
        self.command = tuple(command)
        self.cwd = Path(os.path.abspath(cwd))  # noqa: PTH100 - its name is kept, links and all
        self.environ = dict(environ)
        self.warnings: tuple[str, ...] = ()
        self._tell = tell
        self._since_s = written_since_s
        self._numbers = count(1)
        self._folder = Path()
        self._shadow: Shadow | None = None
        self._is_guard_checked = False
        self._attempts: set[Attempt] = set()
        self._server: ForkServer | None = None

    def __enter__(self) -> Workshop:
        commands.refuse(self.command, self.cwd)
        roots = roots_of(self.command, self.cwd)
        self._folder = _make_folder(roots)
        try:
            self._tell(f"copying {', '.join(map(str, roots))}")
            shadow = Shadow(self._folder / "0", roots, self.cwd, self._since_s)
            shadow.make()
            self._shadow = shadow
            self.warnings = sideeffects.warnings(self.command, self.cwd, roots)
        except BaseException:
            self._clean_up()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._clean_up()

    def rerun(
        self, change: Change, seed: int, limits: Limits, hang_after_s: float | None = None
    ) -> Rerun:
        """Run the command on a fresh copy with a change, and return how it went."""
        shadow = self._shadow
        if shadow is None:
            raise CannotRerun("the workshop is not open")
        number = next(self._numbers)
        sandbox = Sandbox(self._folder / str(number), self._folder / "caches")
        recording = self._folder / "recordings" / str(number)
        try:
            attempt = self._prepare(shadow, sandbox, recording, change, seed, limits, hang_after_s)
            self._check_guard(attempt, sandbox)
            self._attempts.add(attempt)
            attempt.run(limits.time_s)
            told = _told(sandbox.guard_log)
            _speak_of_originals(recording, str(sandbox.base))
        finally:
            _remove(sandbox.home)
        return _outcome(attempt, change, seed, told)

    @property
    def is_warm(self) -> bool:
        """Tell whether later reruns are forks."""
        return self._server is not None

    def warm_up(self) -> None:
        """Let an interpreter import torch, so that later reruns are forks of it."""
        python = self._command(self._shadow, self._folder)[0] if self._shadow else ""
        if self._server is None and is_possible() and script_of(self.command) and python:
            with suppress(OSError):
                self._server = ForkServer(python, self.environ, self._folder)

    def abandon(self) -> None:
        """End all reruns that go on in other threads."""
        for attempt in list(self._attempts):
            attempt.is_abandoned = True

    def _prepare(
        self,
        shadow: Shadow,
        sandbox: Sandbox,
        recording: Path,
        change: Change,
        seed: int,
        limits: Limits,
        hang_after_s: float | None,
    ) -> Attempt:
        sandbox.make()
        shadow.spread(sandbox.base)
        if change.patch:
            apply_patch(change.patch, shadow, sandbox.base)
        self._lead_shells(shadow, sandbox.base)
        environ = rerun_environment.environ_of(
            self.environ, shadow, sandbox, recording, hang_after_s
        )
        guard = rerun_environment.guard_values(self.environ, sandbox, recording, shadow.roots)
        return Attempt(
            command=self._command(shadow, sandbox.base),
            cwd=Shadow.at(sandbox.base, shadow.cwd),
            environ=rerun_environment.changed(environ, change, seed, limits, guard),
            folder=recording,
            shown_command=self.command,
            shown_cwd=self.cwd,
            server=self._server,
        )

    def _check_guard(self, attempt: Attempt, sandbox: Sandbox) -> None:
        """Have the interpreter load the guard once before it runs the user's program."""
        python = next((w for w in attempt.command if PYTHON.fullmatch(w)), None)
        if python is None or self._is_guard_checked:
            return
        self._is_guard_checked = True
        environ = {**attempt.environ, MARK: str(sandbox.home / "check")}
        try:
            done = subprocess.run(
                [python, "-c", "pass"],
                cwd=attempt.cwd,
                env=environ,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=LONGEST_CHECK_S,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            return  # it will fail the same way when it is started, and that is told
        if GUARDED not in _told(sandbox.guard_log):
            said = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
            why = f": {said[:200]}" if said else ""
            raise CannotRerun(f"{python} does not load the guard over your files{why}")

    def _command(self, shadow: Shadow, base: Path) -> list[str]:
        words = rerun_environment.with_free_ports(self.command)
        if os.sep in words[0]:  # an interpreter of an environment in the project stays
            absolute = os.path.normpath(self.cwd / words[0])
            if any(absolute.startswith(e + os.sep) for e in shadow.environments):
                words[0] = absolute
        return [shadow.rewrite(word, base) for word in words]

    def _lead_shells(self, shadow: Shadow, base: Path) -> None:
        """Lead the project's paths in a shell script to the copy: nothing guards a shell."""
        for script in scripts_of(self.command, self.cwd):
            copy = Shadow.at(base, script)
            if script.suffix in (".sh", ".bash", ".zsh") and not copy.is_symlink():
                with suppress(OSError, UnicodeDecodeError):
                    text = copy.read_text(encoding="utf-8")
                    copy.write_text(shadow.rewrite(text, base), encoding="utf-8")

    def _clean_up(self) -> None:
        self._shadow = None
        if self._server is not None:
            self._server.close()
        if self._folder != Path():
            _remove(self._folder)


def _make_folder(roots: Sequence[Path]) -> Path:
    """Make a folder for all copies, in none of the folders that are copied."""
    why = ""
    for parent in (tempfile.gettempdir(), *TEMPORARY, *(str(r.parent) for r in roots)):
        real = os.path.realpath(parent)
        if any(is_below(real, str(root)) and not is_shared(root) for root in roots):
            continue
        try:
            return Path(tempfile.mkdtemp(prefix="traindx-", dir=real))
        except OSError as error:
            why = f": {error.strerror or error}"
    raise CannotRerun(f"there is no temporary folder for a copy of the project{why}")


def _outcome(
    attempt: Attempt, change: Change, seed: int, told: Mapping[str, Sequence[str]]
) -> Rerun:
    applied, notes = read_reports(attempt.folder)
    stopped = "time" if attempt.is_out_of_time else "steps" if applied.get("stop") else ""
    said = [f"guard: {k} {text}" for k in told if k not in _QUIET for text in told[k]]
    if GUARDED not in told:
        said.append("guard: was not active, for no Python process below the command loaded it")
    return Rerun(
        change=change,
        seed=seed,
        folder=attempt.folder,
        exit_code=attempt.exit_code,
        stopped=stopped,
        first_step_s=attempt.first_step_s,
        duration_s=attempt.duration_s,
        applied=applied,
        notes=(*notes, *said)[:MOST_NOTES],
        redirected=_outermost(told.get(REDIRECTED, ()))[:MOST_NOTES],
    )


def read_reports(folder: Path) -> tuple[dict[str, int], tuple[str, ...]]:
    """Return how often each intervention made a difference, and what was said, by all processes."""
    applied: Counter[str] = Counter()
    notes: dict[str, None] = {}
    for path in sorted(folder.glob("interventions-*.json")):
        try:
            told = json.loads(path.read_text(encoding="utf-8"))
            for name, report in told.items():
                applied[name] += int(report.get("applied") or 0)
                said = [str(n) for n in report.get("notes") or ()]
                said += [f"failed: {report['failed']}"] if report.get("failed") else []
                notes.update(dict.fromkeys(f"{name}: {text}" for text in said))
        except (OSError, ValueError, AttributeError, TypeError):
            continue
    return dict(applied), tuple(notes)[:MOST_NOTES]


def _told(log: Path) -> dict[str, list[str]]:
    """Return what the guards of all processes told, by its kind, each once."""
    found: dict[str, list[str]] = {}
    with suppress(OSError):
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
        for line in dict.fromkeys(lines):
            kind, _, text = line.partition("\t")
            found.setdefault(kind, []).append(text)
    return found


def _outermost(paths: Sequence[str]) -> tuple[str, ...]:
    """Return the paths that lie in none of the others."""
    kept: list[str] = []
    for path in sorted(set(paths)):
        if not kept or not is_below(path, kept[-1]):
            kept.append(path)
    return tuple(kept)


def _speak_of_originals(recording: Path, base: str) -> None:
    """Name the user's files in a recording, not their copies, which will be gone."""
    kept = (*recording.glob("rank*-*.jsonl"), *recording.glob("output*.log"))
    about = (*recording.glob("sources/index.json"), *recording.glob("incidents/*/*.json"))
    for path in (*kept, *about, *recording.glob("*.stack"), *recording.glob("incidents/*/*.py")):
        with suppress(OSError):
            data = path.read_bytes()
            if base.encode() in data:
                path.write_bytes(data.replace(base.encode(), b""))


def _remove(folder: Path) -> None:
    """Remove a folder of ours, also where a program took away its own right to."""
    shutil.rmtree(folder, ignore_errors=True)
    if folder.exists():
        for inner, _, _ in os.walk(folder):
            with suppress(OSError):
                os.chmod(inner, 0o700)  # noqa: PTH101
        shutil.rmtree(folder, ignore_errors=True)
