"""The environment of a rerun: recorded, changed, and kept away from what is the user's."""

from __future__ import annotations

import json
import os
import re
import socket
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from traindx.capture.launcher.launch import environment
from traindx.experiments.changes import Change, Limits
from traindx.experiments.interventions.guard.mirror import is_below
from traindx.experiments.sandbox.shadow import Shadow

INTERVENTIONS = "TRAINDX_INTERVENTIONS"
INTERVENTIONS_HOME = Path(__file__).resolve().parent.parent / "interventions"
OVERHEAD = 0.1  # a rerun is short and there to be looked at
LARGEST_SEED = 2**32 - 1
_PORT_OPTION = re.compile(r"(--(?:master[_-]port|main_process_port|rdzv[_-]endpoint))(?:=(.*))?")
_LOCAL = re.compile(r"((?:localhost|127\.0\.0\.1|0\.0\.0\.0):)?\d+")
# set only in a rerun; each one alone keeps its tracker from the network
_TRACKERS = {
    "WANDB_MODE": "disabled",
    "WANDB_SILENT": "true",
    "COMET_MODE": "offline",
    "NEPTUNE_MODE": "offline",
    "CLEARML_OFFLINE_MODE": "1",
    "SWANLAB_MODE": "disabled",
    "DVC_NO_ANALYTICS": "true",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "DO_NOT_TRACK": "1",
}
_TRACKER_FOLDERS = (
    "WANDB_DIR", "WANDB_ARTIFACT_DIR", "COMET_OFFLINE_DIRECTORY", "NEPTUNE_DATA_DIRECTORY",
)  # fmt: skip
_UNMOVED = frozenset({"PATH", "VIRTUAL_ENV", "CONDA_PREFIX", "HOME", "LD_LIBRARY_PATH"})
_CACHES = (
    "XDG_CACHE_HOME", "TORCH_HOME", "HF_HOME", "HF_HUB_CACHE", "HF_DATASETS_CACHE",
    "TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR", "MPLCONFIGDIR", "NUMBA_CACHE_DIR",
    "CUDA_CACHE_PATH", "TRANSFORMERS_CACHE", "KERAS_HOME", "NLTK_DATA",
)  # fmt: skip
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/tty", "/dev/fd", "/dev/pts")
_HOME_CACHES = (".cache", ".triton", ".nv", ".config/matplotlib", ".keras", "nltk_data")


@dataclass(frozen=True, slots=True)
class Sandbox:
    """The folders of one rerun."""

    home: Path
    caches: Path  # of compiled code, shared between reruns

    @property
    def base(self) -> Path:
        return self.home / "files"

    @property
    def temporary(self) -> Path:
        return self.home / "tmp"

    @property
    def trackers(self) -> Path:
        return self.home / "trackers"

    @property
    def guard_log(self) -> Path:
        return self.home / "guard.txt"

    def make(self) -> None:
        """Make the folders that a program expects to be there."""
        for folder in (self.home, self.temporary, self.trackers, self.caches):
            folder.mkdir(parents=True, exist_ok=True)


def environ_of(
    given: Mapping[str, str],
    shadow: Shadow,
    sandbox: Sandbox,
    recording: Path,
    hang_after_s: float | None,
) -> dict[str, str]:
    """Return the environment of a rerun, without what is changed in it."""
    base = sandbox.base
    moved = {
        name: value if name in _UNMOVED else shadow.rewrite(value, base)
        for name, value in given.items()
    }
    moved.pop(INTERVENTIONS, None)
    made = environment(moved, recording, OVERHEAD, hang_after_s)
    made.update(_TRACKERS)
    made.update(dict.fromkeys(_TRACKER_FOLDERS, str(sandbox.trackers)))
    made["MLFLOW_TRACKING_URI"] = (sandbox.trackers / "mlruns").as_uri()
    made["MLFLOW_ALLOW_FILE_STORE"] = "true"
    made["PYTHONDONTWRITEBYTECODE"] = "1"
    made["PWD"] = f"{base}{shadow.cwd}"
    made.update(dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(sandbox.temporary)))
    made.setdefault("TORCHINDUCTOR_CACHE_DIR", str(sandbox.caches / "inductor"))
    made.setdefault("TRITON_CACHE_DIR", str(sandbox.caches / "triton"))
    port = str(free_port())
    made["PET_MASTER_PORT"] = port
    if "MASTER_PORT" in made:
        made["MASTER_PORT"] = port
    return made


def changed(
    environ: Mapping[str, str],
    change: Change,
    seed: int,
    limits: Limits,
    guard: Mapping[str, str],
) -> dict[str, str]:
    """Return an environment that carries the interventions of a rerun."""
    listed: list[dict[str, object]] = [
        {"name": "guard", "values": dict(guard)},
        {"name": "seed", "values": {"seed": seed}},
    ]
    listed += [{"name": i.name, "values": dict(i.values)} for i in change.interventions]
    if limits.steps is not None:
        listed.append({"name": "stop", "values": {"steps": limits.steps}})
    hash_seed = environ.get("PYTHONHASHSEED") or str(seed % LARGEST_SEED)
    unrecorded = {} if limits.is_recorded else {"TRAINDX_UNRECORDED": "1"}
    return {
        **environ,
        **unrecorded,
        INTERVENTIONS: json.dumps(listed),
        f"{INTERVENTIONS}_HOME": str(INTERVENTIONS_HOME),
        "PYTHONHASHSEED": hash_seed,
    }


def guard_values(
    environ: Mapping[str, str], sandbox: Sandbox, recording: Path, roots: Sequence[Path]
) -> dict[str, str]:
    """Return what the guard inside needs to know, as text."""
    home = environ.get("HOME") or os.path.expanduser("~")  # noqa: PTH111
    allowed = ["/dev", *_DEVICES, "/proc", *(f"{home}/{name}" for name in _HOME_CACHES)]
    allowed += [environ[name] for name in _CACHES if environ.get(name)]
    kept = [*map(str, roots), home]  # a folder with one of these in it is not free to be written
    allowed = [a for a in allowed if not any(is_below(k, os.path.realpath(a)) for k in kept)]
    allowed += [str(sandbox.home), str(sandbox.caches), str(recording)]
    return {
        "mirror": str(sandbox.base),
        "allowed": os.pathsep.join(allowed),
        "roots": os.pathsep.join(map(str, roots)),
        "log": str(sandbox.guard_log),
        "born_s": f"{time.time():.3f}",
    }


def with_free_ports(command: Sequence[str]) -> list[str]:
    """Return a command whose ports on this machine are free: the original may still be running."""
    words = list(command)
    for i, word in enumerate(words):
        match = _PORT_OPTION.fullmatch(word)
        if match is None:
            continue
        if match[2] is not None:
            words[i] = f"{match[1]}={_with_free_port(match[2])}"
        elif i + 1 < len(words):
            words[i + 1] = _with_free_port(words[i + 1])
    return words


def _with_free_port(value: str) -> str:
    match = _LOCAL.fullmatch(value)
    return value if match is None else f"{match[1] or ''}{free_port()}"


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
