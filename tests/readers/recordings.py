"""Recordings for tests: folders that hold what a recorder and its parent write."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from traindx.model.recording import (
    Caught,
    Counts,
    Epoch,
    Loader,
    LossInput,
    Model,
    NonFinite,
    Optimizer,
    Parameter,
    Place,
    Sample,
    Stall,
    Submodule,
    Summary,
)
from traindx.readers.formats.recording.process_file import _KINDS

KINDS = {
    Caught: "caught", Counts: "counts", Epoch: "epoch", Loader: "loader", Model: "model",
    NonFinite: "nonfinite", Optimizer: "optimizer", Sample: "sample", Stall: "stall",
}  # fmt: skip
HEADER = {
    "k": "process", "v": 1, "pid": 123, "rank": 0, "world_size": 1, "host": "box",
    "argv": ["train.py", "--lr", "0.1", "seed=3"], "main": "/home/u/train.py", "cwd": "/home/u",
    "python": "3.11.7", "torch": "2.13.0", "started_s": 1.7e9,
}  # fmt: skip
PLACE = Place("/home/u/train.py", 12, "train", "loss.backward()")
NAMES = ("fc.weight", "fc.bias")


def record(value: Any) -> dict[str, Any]:
    """Return a record as the recorder writes it: without its line, and without defaults."""
    told = {k: v for k, v in asdict(value).items() if k != "line"}
    return {"k": KINDS[type(value)], **told}


def steps(losses: Sequence[float | None], **columns: Any) -> dict[str, Any]:
    """Return a block of steps that counts from 0."""
    count = len(losses)
    return {
        "k": "steps", "stride": 1, "optimizer": [0] * count, "step": list(range(count)),
        "loss": list(losses), "lr": [0.1] * count, "micro": [1] * count, "batch": [32] * count,
        "data_s": [0.01] * count, "forward_s": [0.02] * count, "backward_s": [0.03] * count,
        "optimizer_s": [0.005] * count, "total_s": [0.07] * count,
        "time_s": [1.7e9 + i for i in range(count)], **columns,
    }  # fmt: skip


def model(**changes: Any) -> Model:
    given: dict[str, Any] = {
        "type": "Net",
        "parameters": tuple(
            Parameter(n, s, "float32", True, 0) for n, s in zip(NAMES, ((2, 10), (2,)), strict=True)
        ),
        "modules": (Submodule("", "Net"), Submodule("fc", "Linear")),
    }
    return Model(line=0, **{**given, **changes})


def optimizer(**changes: Any) -> Optimizer:
    groups = ({"lr": 0.1, "weight_decay": 0.01, "parameters": 2},)
    return Optimizer(line=0, **{"type": "SGD", "groups": groups, "size": 2, **changes})


def sample(step: int, **changes: Any) -> Sample:
    given: dict[str, Any] = {
        "names": NAMES, "grad_norms": (3.0, 4.0), "weight_norms": (1.0, 2.0),
        "update_ratios": (0.001, None), "has_moved": (True, None), "rss_bytes": 1e9 + step,
        "losses": (LossInput("cross_entropy", "addmm", Summary("prediction", (32, 2), "float32")),),
        "batch": (Summary("0", (32, 10), "float32", "cpu", -1.0, 1.0, 0.0, 0.5),), "place": PLACE,
    }  # fmt: skip
    return Sample(line=0, step=step, **{**given, **changes})


def caught(**changes: Any) -> Caught:
    given: dict[str, Any] = {
        "type": "RuntimeError",
        "message": "mat1 and mat2 shapes cannot be multiplied (3x7 and 10x2)",
        "step": 9,
        "time_s": 1.7e9 + 9,
        "places": (PLACE,),
        "tensors": (("train, line 12", Summary("x", (3, 7), "float32", "cpu", -1.0, 1.0)),),
        "modules": (("", "Net", ((3, 7),)), ("fc", "Linear", ((3, 7),))),
    }
    return Caught(line=0, **{**given, **changes})


def write_lines(path: Path, records: Sequence[Any]) -> Path:
    """Write records, dicts or classes of a recording, as a file of a process."""
    told = [r if isinstance(r, Mapping) else record(r) for r in records]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(r) + "\n" for r in told))
    return path


def write_recording(
    folder: Path,
    records: Sequence[Any] = (),
    *,
    output: str = "",
    sources: Mapping[str, str] | None = None,
    about: Mapping[str, Any] | None = None,
    header: Mapping[str, Any] | None = None,
) -> Path:
    """Write the folder of a recording with one process."""
    folder.mkdir(parents=True, exist_ok=True)
    head = {**HEADER, **(header or {})}
    given = [head, *(records or (model(), optimizer(), sample(0), steps([1.0, 0.5, 0.25])))]
    write_lines(folder / f"rank{head['rank']}-{head['pid']}.jsonl", given)
    told = {
        "k": "run", "v": 1, "command": ["python", "train.py"], "started_s": 1.7e9,
        "is_running": False, "ended_s": 1.7e9 + 60, "exit_code": 0, "signal": None, **(about or {}),
    }  # fmt: skip
    (folder / "run.json").write_text(json.dumps(told, indent=1))
    if output:
        (folder / "output.log").write_text(output)
    if sources:
        (folder / "sources").mkdir()
        index = {}
        for number, (original, text) in enumerate(sources.items()):
            (folder / "sources" / f"copy{number}.py").write_text(text)
            index[f"copy{number}.py"] = original
        (folder / "sources" / "index.json").write_text(json.dumps(index))
    return folder


def write_batch(folder: Path) -> None:
    """Write the batch of an incident as the recorder does."""
    folder.mkdir(parents=True)
    header = json.dumps({"0": {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 16]}}).encode()
    data = struct.pack("<4f", 1.0, 2.0, 3.0, 40.0)
    (folder / "batch.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + data)
    about = {"batch": {"tensor": "0"}, "notes": ["labels: left out, a Labels"]}
    (folder / "incident.json").write_text(json.dumps(about))


_LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
_VALUES = st.recursive(
    _LEAVES,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4)
    ),
    max_leaves=12,
)
_FIELDS = {
    "steps": ["step", "loss", "optimizer", "stride", "micro", "clip_norm", "loss_high"],
    "process": ["pid", "rank", "argv", "started_s", "world_size", "models"],
    "counts": list(Counts.__dataclass_fields__),
    **{kind: list(made.__dataclass_fields__) for kind, (_, made) in _KINDS.items()},
}


@st.composite
def odd_records(draw: st.DrawFn) -> dict[str, Any]:
    """Return a record of any kind with anything in its fields."""
    kind = draw(st.sampled_from([*_FIELDS]))
    chosen = draw(st.lists(st.sampled_from(_FIELDS[kind]), max_size=6))
    return {"k": kind, **{name: draw(_VALUES) for name in chosen}}
