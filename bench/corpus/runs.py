"""Running a program, plain or recorded, and keeping what it left."""

from __future__ import annotations

import fcntl
import itertools
import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from bench.corpus.program import Program
from bench.programs import RIDE

TIMEOUT_S = 300.0  # of a clock that also runs while others use the machine
RECORDING_TIMEOUT_S = 400.0
SHARED = (
    "torch,torch._dynamo,sklearn.datasets,sklearn.model_selection,sklearn.preprocessing,yaml,tqdm"
)
MODULES = {
    "lightning": f"{SHARED},lightning",
    "transformers": f"{SHARED},transformers,transformers.trainer",
    "accelerate": f"{SHARED},accelerate",
}
KEPT = (".pt", ".pth", ".ckpt", ".safetensors")
REPOSITORY = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class Ran:
    """How a plain run ended and where its log is; no code means that it hung."""

    code: int | None
    seconds: float
    folder: Path

    @property
    def log(self) -> str:
        return (self.folder / "log.txt").read_text(encoding="utf-8", errors="replace")

    @property
    def checkpoint(self) -> Path | None:
        return next(iter(sorted(self.folder.glob("checkpoint.*"))), None)

    @property
    def crashed(self) -> bool:
        return self.code is None or self.code != 0

    def outcome(self, program: Program) -> float | None:
        """Return the last value of the program's own metric."""
        return self._last(program.metric)

    def loss(self, program: Program) -> float | None:
        """Return the last loss in the log."""
        return self._last(program.loss) if program.loss is not None else None

    def _last(self, pattern: re.Pattern[str]) -> float | None:
        found = pattern.findall(self.log)
        if not found:
            return None
        try:
            return float(str(found[-1]).rstrip("%,;|}"))
        except ValueError:
            return math.nan


def surroundings(seed: int) -> dict[str, str]:
    return {
        "SEED": str(seed),
        "OMP_NUM_THREADS": "1",
        "HF_HUB_OFFLINE": "1",
        "PYTHONHASHSEED": "0",
        "PYTHONUNBUFFERED": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "NO_COLOR": "1",
    }


@dataclass
class Runner:
    """Runs programs in a working folder of its own; plain ones in forks where that is possible."""

    cache: Path
    servers: dict[str, subprocess.Popen[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Take the first working folder that no other runner has."""
        for slot in itertools.count():
            folder = self.cache / f"work-{slot}"
            folder.mkdir(parents=True, exist_ok=True)
            self._lock = (folder / "lock").open("w")
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                self._lock.close()
                continue
            self.project = folder / "project"
            return

    def run(self, program: Program, seed: int, *, is_launched: bool = False) -> Ran:
        """Run a program without traindx, or return what an earlier run of the same text left.

        Ranks are forked, which is cheap; `is_launched` starts them as the user would.
        """
        is_launched = is_launched and program.ranks > 1
        key = program.digest("launched" if is_launched else "plain", str(seed))
        folder = self.cache / "runs" / key[:2] / key
        about = folder / "ran.json"
        if not about.exists():
            self._lay_out(program)
            folder.mkdir(parents=True, exist_ok=True)
            log = folder / "log.txt"
            start = self._launch if is_launched else self._fork
            code, seconds = start(program, seed, log)
            if code == -signal.SIGKILL:
                with log.open("a") as file:
                    file.write("Killed\n")  # what the shell says
            self._keep_checkpoint(folder)
            about.write_text(json.dumps({"code": code, "seconds": seconds}), encoding="utf-8")
        kept = json.loads(about.read_text(encoding="utf-8"))
        return Ran(kept["code"], kept["seconds"], folder)

    def record(self, program: Program, seed: int, folder: Path) -> int | None:
        """Run a program under the recorder, without a diagnosis; return how it ended."""
        self._lay_out(program)
        if folder.exists():
            shutil.rmtree(folder)
        command = [sys.executable, "-c", RIDE, str(folder), *self._command(program)]
        return self._wait(command, seed, subprocess.DEVNULL, RECORDING_TIMEOUT_S)

    def close(self) -> None:
        for server in self.servers.values():
            server.terminate()
            server.wait()
        self.servers.clear()
        self._lock.close()

    def _launch(self, program: Program, seed: int, log: Path) -> tuple[int | None, float]:
        start = time.perf_counter()
        with log.open("w") as file:
            code = self._wait(self._command(program), seed, file.fileno(), TIMEOUT_S)
        return code, time.perf_counter() - start

    def _fork(self, program: Program, seed: int, log: Path) -> tuple[int | None, float]:
        log.unlink(missing_ok=True)
        script = next(p for p in program.command if p.endswith(".py"))
        job = {
            "folder": str(self.project),
            "script": script,
            "log": str(log),
            "environment": surroundings(seed),
            "ranks": program.ranks,
            "timeout_s": TIMEOUT_S,
        }
        server = self._server(program.framework)
        assert server.stdin is not None and server.stdout is not None
        server.stdin.write(json.dumps(job) + "\n")
        server.stdin.flush()
        answer = json.loads(server.stdout.readline())
        return answer["code"], answer["seconds"]

    def _server(self, framework: str) -> subprocess.Popen[str]:
        modules = MODULES.get(framework, SHARED)
        if modules not in self.servers:
            server = subprocess.Popen(
                [sys.executable, "-m", "bench.corpus.forks", modules],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                cwd=REPOSITORY,
                env={**os.environ, **surroundings(0)},
            )
            assert server.stdout is not None and server.stdout.readline().strip() == "ready"
            self.servers[modules] = server
        return self.servers[modules]

    def _command(self, program: Program) -> list[str]:
        first, *rest = program.command
        if first == "python":
            return [sys.executable, *rest]
        if first == "torchrun":
            return [sys.executable, "-m", "torch.distributed.run", *rest]
        return [str(Path(sys.executable).with_name(first)), *rest]

    def _wait(self, command: list[str], seed: int, output: int, timeout_s: float) -> int | None:
        """Run a command in a session of its own, and end all of it at the time limit."""
        process = subprocess.Popen(
            command,
            cwd=self.project,
            env={**os.environ, **surroundings(seed)},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            return process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
                time.sleep(2.0)
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return None

    def _lay_out(self, program: Program) -> None:
        if self.project.exists():
            shutil.rmtree(self.project)
        for path, text in program.files.items():
            file = self.project / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")

    def _keep_checkpoint(self, folder: Path) -> None:
        found = sorted(p for p in self.project.rglob("*") if p.suffix in KEPT)
        if found:
            shutil.copy(found[0], folder / f"checkpoint{found[0].suffix}")
