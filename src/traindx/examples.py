"""Runs, curves and recordings for the examples of detectors: what real runs look like, seeded."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from traindx.model.recording import (
    Activation,
    CapturedStep,
    Caught,
    Counts,
    Ending,
    Epoch,
    Evaluation,
    Fingerprint,
    Loader,
    LossInput,
    Model,
    NonFinite,
    Optimizer,
    Parameter,
    Place,
    Process,
    Recording,
    Sample,
    Shape,
    Stall,
    StepOperation,
    StepTensor,
    Submodule,
    Summary,
)
from traindx.model.run import (
    Architecture,
    Artifact,
    Config,
    Confusion,
    Event,
    Failure,
    Floats,
    Frame,
    Origin,
    Run,
    Series,
    Setting,
    Source,
    Tensor,
    TextSample,
)

__all__ = [  # with the words that runs are made of, so that most examples need no other import
    "CUTS",
    "DOCUMENTS",
    "IMPORTS",
    "ONE_NAME",
    "TRAINING",
    "Activation",
    "Architecture",
    "CapturedStep",
    "Caught",
    "Confusion",
    "Counts",
    "Ending",
    "Epoch",
    "Evaluation",
    "Event",
    "Failure",
    "Fingerprint",
    "Floats",
    "Frame",
    "Loader",
    "LossInput",
    "Model",
    "NonFinite",
    "Optimizer",
    "Parameter",
    "Place",
    "Process",
    "Sample",
    "Shape",
    "Stall",
    "Summary",
    "Tensor",
    "TextSample",
    "captured",
    "decay",
    "failed",
    "flat",
    "join",
    "logged",
    "make_run",
    "recorded",
    "resampled",
    "rounded",
    "sampled",
    "script",
    "stalled",
    "step_of",
    "template",
    "watched",
    "weights",
    "with_checkpoints",
    "with_evaluation",
    "with_source",
]

ONE_NAME = ("grad_norm", "loss_scale", "weight_norm", "clip_max")  # series of no phase
IMPORTS = """
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset, TensorDataset, random_split
"""
TRAINING = """
model = nn.Linear(8, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    optimizer.zero_grad()
    F.cross_entropy(model(x), y).backward()
    optimizer.step()
"""
DOCUMENTS = (".json", ".yaml", ".yml", ".toml")


def make_run(
    series: Mapping[str, ArrayLike] | None = None,
    *,
    steps: ArrayLike | None = None,
    epochs: ArrayLike | None = None,
    config: Mapping[str, Any] | None = None,
    events: Iterable[Event] = (),
    failures: Iterable[Failure] = (),
    sources: Mapping[str, str] | None = None,
    architecture: Architecture | None = None,
    axis: str = "step",
) -> Run:
    """Build a run from plain values."""
    made = {}
    for name, given in (series or {}).items():
        values = np.asarray(given, dtype=np.float64)
        own_steps = np.arange(len(values), dtype=np.float64)
        if steps is not None and len(np.asarray(steps)) == len(values):
            own_steps = np.asarray(steps, dtype=np.float64)
        own_epochs = np.empty(0)
        if epochs is not None and len(np.asarray(epochs)) == len(values):
            own_epochs = np.asarray(epochs, dtype=np.float64)
        places = np.arange(1, len(values) + 1, dtype=np.int64)
        origin = Origin("example.log", name)
        made[name] = Series(name, values, own_steps, origin, axis, own_epochs, places)
    files = [Source(p, t) for p, t in (sources or {}).items()]
    settings = tuple(Setting(k, v, "example.yaml", k) for k, v in (config or {}).items())
    return Run(
        name="example",
        series=made,
        events=tuple(events),
        failures=tuple(failures),
        sources=tuple(s for s in files if not s.path.endswith(DOCUMENTS)),
        documents=tuple(s for s in files if s.path.endswith(DOCUMENTS)),
        config=Config(settings),
        architecture=architecture,
        artifacts=(Artifact("example.log", "example"),),
    )


def logged(
    *,
    axis: str = "step",
    steps: ArrayLike | None = None,
    epochs: ArrayLike | None = None,
    config: Mapping[str, Any] | None = None,
    events: Iterable[Event] = (),
    failures: Iterable[Failure] = (),
    sources: Mapping[str, str] | None = None,
    **series: ArrayLike,
) -> Run:
    """Return a run that logged these series; `loss_train` names the series loss/train."""
    return make_run(
        _named(series), axis=axis, steps=steps, epochs=epochs, config=config, events=events,
        failures=failures, sources=sources,
    )  # fmt: skip


def _named(series: Mapping[str, ArrayLike]) -> dict[str, ArrayLike]:
    """Return series by their canonical names."""
    return {n if n in ONE_NAME else n.replace("_", "/", 1): v for n, v in series.items()}


_TORCH = re.compile(r"(?m)^\s*(?:import|from) torch\b")
_BLANK = re.compile(r"\{(?:\{|(?P<name>\w+)(?::(?P<usual>[^{}]*))?\})|\}\}")


def script(text: str, /, *, path: str = "train.py", **parts: object) -> Run:
    """Return a run of which only the program is known; parts fill the blanks of its text.

    A program that does not import torch by itself begins with the usual imports.
    """
    filled = _filled(text, parts) if parts else text
    return make_run(sources={path: filled if _TORCH.search(filled) else IMPORTS + filled})


def template(
    text: str, /, *blanks: str, path: str = "train.py", **usual: object
) -> Callable[..., Run]:
    """Return what makes a run of a program that begins with the usual imports.

    A blank of the text may say what usually fills it, `{loss:model(x).mean()}`. Blanks are filled
    by name or in order: these, then those of the text that nothing usually fills, then the others.
    """
    written: dict[str, str | None] = {}
    for blank in filter(lambda b: b["name"], _BLANK.finditer(text)):
        written.setdefault(blank["name"], blank["usual"])
    usually = {**{n: u for n, u in written.items() if u is not None}, **usual}
    order = dict.fromkeys((*blanks, *(n for n in written if n not in usually), *usually))

    def filled(*given: object, **named: object) -> Run:
        parts = {**usually, **dict(zip(order, given, strict=False)), **named}
        return script(IMPORTS + text, path=path, **parts)

    return filled


def _filled(text: str, parts: Mapping[str, object]) -> str:
    """Return a text with its blanks filled and its doubled braces single."""
    return _BLANK.sub(lambda b: str(parts[b["name"]]) if b["name"] else b[0][0], text)


def failed(
    error: str,
    code: str = "",
    *,
    sources: Mapping[str, str] | None = None,
    line: int = 0,
    rank: int | None = None,
    frames: Sequence[Frame] = (),
) -> Run:
    """Build a run that ended with ``Type: message``.

    `code` is the line that raised; with sources, its place is looked up there. A traceback of
    several lines is given as frames.
    """
    name, _, message = error.partition(": ")
    file, at = "train.py", line or 31
    for path, text in (sources or {}).items():
        for number, written in enumerate(text.split("\n"), 1):
            if code and written.strip().startswith(code):
                file, at = path, line or number
    own = (Frame(file, at, "<module>", code),) if code else ()
    failure = Failure(name, message, "train.log", "line 90", (*own, *frames), rank)
    return make_run(failures=[failure], sources=sources)


def with_source(run: Run, text: str) -> Run:
    """Return a run whose program is known."""
    return replace(run, sources=(Source("train.py", text),))


def rounded(run: Run, name: str, decimals: int) -> Run:
    """Return a run whose log prints a series with so many decimals."""
    series = run.series[name]
    told = replace(series, origin=replace(series.origin, decimals=decimals))
    return replace(run, series={**run.series, name: told})


def with_checkpoints(*saved: Architecture) -> Run:
    """Return a run that left these checkpoints, oldest first."""
    return replace(make_run(architecture=saved[-1]), checkpoints=saved)


def decay(
    count: int, start: float = 2.3, end: float = 0.4, *, noise: float = 0.05, seed: int = 0
) -> Floats:
    """Return a loss that falls steeply, then slowly, with noise in proportion to its level."""
    rng = np.random.default_rng(seed)
    time = np.linspace(0.0, 1.0, count)
    remaining = (np.exp(-5.0 * time) - np.exp(-5.0)) / (1.0 - np.exp(-5.0))
    smooth = end + (start - end) * remaining
    return np.asarray(smooth * (1.0 + noise * rng.standard_normal(count)), dtype=np.float64)


def flat(count: int, level: float, *, noise: float = 0.02, seed: int = 0) -> Floats:
    """Return a curve that only shakes about its level."""
    rng = np.random.default_rng(seed)
    return np.asarray(level * (1.0 + noise * rng.standard_normal(count)), dtype=np.float64)


def join(*parts: ArrayLike) -> Floats:
    """Return curves one after another."""
    return np.concatenate([np.asarray(part, dtype=np.float64) for part in parts])


def recorded(*processes: Process, ending: Ending | None = None, **series: ArrayLike) -> Run:
    """Return a run with a recording; `loss_train` names the series loss/train."""
    ranked = tuple(
        replace(p, path=f"rank{i}.jsonl", rank=i, world_size=len(processes))
        for i, p in enumerate(processes)
    )
    return replace(make_run(_named(series)), recording=Recording(ranked, ending))


_SOURCE = re.compile(r"(?P<name>\w+): (?P<role>\S+) \((?P<shape>[\d, ]*)\)")
_STEP_LINE = re.compile(
    r"(?P<name>\w+) \((?P<shape>[\d, ]*)\) = (?P<op>\w+)\((?P<inputs>[\w, ]*)\)"
    r"(?: in (?P<module>\S+))?(?: @ (?P<line>\d+))?"
)
CUTS = frozenset({"detach", "argmax", "eq", "gt", "lt", "round", "sign"})


def step_of(text: str, kind: str = "training", **facts: Mapping[str, Any]) -> CapturedStep:
    """Return a captured step from lines such as `x: batch/0 (32, 8)` and `d (32, 1) = sub(x, y)`.

    What is said of a tensor by its name is added to its facts; `settings` are those of the
    operation that makes it. Backward is called on the tensor named `loss`. Gradients flow from
    parameters through all that does not cut them.
    """
    tensors: list[StepTensor] = []
    operations: list[StepOperation] = []
    numbers: dict[str, int] = {}
    modules: list[str] = []
    places: list[Place] = []
    for line in filter(None, map(str.strip, text.splitlines())):
        source, made = _SOURCE.fullmatch(line), _STEP_LINE.fullmatch(line)
        match = source or made
        if match is None:
            raise ValueError(f"no line of a step: {line}")
        own = dict(facts.get(match["name"], {}))
        settings, ahead = own.pop("settings", {}), own.pop("ahead", None)
        shape = tuple(int(n) for n in match["shape"].split(",") if n.strip())
        role = "" if source is None else source["role"].replace("outside", "")
        given = () if made is None else _numbers_of(made["inputs"], numbers)
        is_live = any(tensors[n].needs_grad for n in given) and made is not None
        is_live = is_live and made is not None and made["op"] not in CUTS
        own.setdefault("needs_grad", is_live or role.startswith("parameter:"))
        numbers[match["name"]] = len(tensors)
        own = {"dtype": "float32", "memory": len(tensors), "role": role, "shape": shape, **own}
        tensors.append(StepTensor(**own))
        if made is not None:
            if made["module"]:
                modules.append(made["module"])
            places.append(Place("train.py", int(made["line"] or len(places) + 10)))
            operations.append(
                StepOperation(
                    made["op"],
                    given,
                    (numbers[made["name"]],),
                    len(modules) - 1 if made["module"] else None,
                    len(places) - 1,
                    settings,
                    is_direct=True,
                    ahead=ahead,
                )
            )
    losses = (numbers["loss"],) if "loss" in numbers else ()
    return CapturedStep(
        9, kind, 1, tuple(tensors), tuple(operations), tuple(modules), tuple(places), losses
    )


def _numbers_of(names: str, numbers: Mapping[str, int]) -> tuple[int, ...]:
    return tuple(numbers[name.strip()] for name in names.split(",") if name.strip())


def captured(*steps: CapturedStep) -> Run:
    """Return a run of which steps were captured."""
    return recorded(Process(captured=steps))


def sampled(count: int, **fields: Any) -> Process:
    """Return a process of samples; a field may be a function of the sample's index."""
    samples = (Sample(**{"line": i + 1, "step": 50 * i, **_at(i, fields)}) for i in range(count))
    return Process(samples=tuple(samples))


def resampled(process: Process, **fields: Any) -> Process:
    """Return a process with other samples; a field may be a function of the sample's index."""
    samples = (replace(s, **_at(i, fields)) for i, s in enumerate(process.samples))
    return replace(process, samples=tuple(samples))


def _at(index: int, fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value(index) if callable(value) else value for name, value in fields.items()}


def watched(
    *parameters: Parameter,
    grads: Sequence[float | None] | None = None,
    still: Sequence[str] = (),
    count: int = 6,
    modules: Mapping[str, str] | None = None,
    optimizer: Optimizer | None = None,
    **fields: Any,
) -> Process:
    """Return a process that trained one model: equal samples in which all but some names move.

    A further field of the samples may be a function of the sample's index.
    """
    moves = tuple(p.optimizer is not None and p.name not in still for p in parameters)
    fields = {
        "line": lambda i: 4 + i,
        "step": lambda i: 10 * i,
        "names": tuple(p.name for p in parameters),
        "grad_norms": tuple(grads) if grads is not None else (0.1,) * len(parameters),
        "weight_norms": lambda i: tuple(1.0 + (0.01 * i if m else 0.0) for m in moves),
        "update_ratios": tuple(1e-3 if m else 0.0 for m in moves),
        "has_moved": moves,
        **{"is_training": True, "carried": False, "cleared": False, "loss": 1.0},
        **fields,
    }
    parts = tuple(Submodule(n, t) for n, t in (modules or {}).items())
    owned = sum(p.optimizer is not None for p in parameters)
    steps = 10 * count
    return replace(
        sampled(count, **fields),
        models=(Model(1, type="Net", parameters=parameters, modules=parts),),
        optimizers=(optimizer or Optimizer(2, type="SGD", groups=({"lr": 0.1},), size=owned),),
        counts=Counts(99, steps=steps, backwards=steps, forwards=steps, has_moved=any(moves)),
    )


def with_evaluation(process: Process, **fields: Any) -> Process:
    """Return a process that trained on one loader and evaluated over a held-out one."""
    return replace(
        process,
        loaders=(Loader(3, 0, "Digits", 6000), Loader(4, 1, "Digits", 1000)),
        epochs=(Epoch(40, 0, 60, trained=60), Epoch(41, 1, 10, step=50)),
        evaluations=(Evaluation(50, **{"step": 50, "forwards": 10, "loader": 1, **fields}),),
    )


def stalled(*stack: Place, step: int = 40, **fields: Any) -> Process:
    """Return a process that stood still at a line of its main thread."""
    main = (("MainThread", stack),)
    return Process(stalls=(Stall(50, step, 60.0, 0.1, main, **fields),))


def weights(*names: str, optimizer: int | None = 0, is_trainable: bool = True) -> list[Parameter]:
    """Return weight matrices of those names."""
    return [Parameter(n, (16, 16), "float32", is_trainable, optimizer) for n in names]
