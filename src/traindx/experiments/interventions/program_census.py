"""Notes what there is in a program that could be changed: optimizers, dropout, clipping, data.

Changes nothing. What is noted decides which changes are worth a rerun, and with which values.
"""

from __future__ import annotations

import atexit
import ctypes
import functools
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import IterableDataset

from . import data_loaders, forwards, loss_calls, moments
from .change_report import ChangeReport
from .data_order import sampler_of
from .dropout import FUNCTIONS as DROPOUTS
from .loss_calls import LossCall
from .plain_losses import CLASSES, VALUES
from .replacement import replace

NORMS = 200  # gradients whose norms are noted
EVERY = 5  # steps between two of them
MOST_ROWS = 3000  # examples that are kept for simple models
MOST_NUMBERS = 2048  # of an example
HALF = (torch.float16, torch.bfloat16)
_SENSITIVE = (nn.modules.dropout._DropoutNd, nn.modules.batchnorm._BatchNorm)


class Census:
    """What was seen of the program."""

    def __init__(self, *, keeps_data: bool) -> None:
        self.facts: dict[str, Any] = {
            "optimizers": [], "norms": [], "clip_calls": 0, "clipped": 0, "clip_limit": None,
            "dropout": 0.0, "smoothing": 0.0, "autocast": False, "half_weights": False,
            "trained_in_eval": 0, "evaluated_in_train": 0, "loaders": [], "has_loaded": False,
            "layers": [], "inputs": None, "targets": None, "rows": 0, "models": [], "classes": 0,
            "loss_kind": "",
        }  # fmt: skip
        self._optimizers: dict[int, dict[str, Any]] = {}
        self._models: set[int] = set()
        self._loaders: set[int] = set()
        self._pid = os.getpid()
        self._next_write = 1.0
        self.examples = Examples() if keeps_data else None

    # optimizers

    def step_begins(self, optimizer: torch.optim.Optimizer) -> None:
        """Note the settings of a step."""
        rates = [float(g.get("lr", 0.0)) for g in optimizer.param_groups]
        rate = max(rates, default=0.0)
        known = self._optimizers.get(id(optimizer))
        if known is None:
            known = self._optimizers[id(optimizer)] = _described(optimizer, rate)
            self.facts["optimizers"].append(known)
            half = any(p.dtype in HALF for p in moments.parameters_of(optimizer))
            self.facts["half_weights"] = self.facts["half_weights"] or half
        known["least"], known["most"] = min(known["least"], rate), max(known["most"], rate)
        known["last"], known["steps"] = rate, known["steps"] + 1

    def update(self, optimizer: torch.optim.Optimizer) -> None:
        """Note the norm of the gradients now and then."""
        norms = self.facts["norms"]
        if moments.steps % EVERY or len(norms) >= NORMS:
            return
        with loss_calls.unseen():
            own = [p.grad for p in moments.parameters_of(optimizer) if p.grad is not None]
            if own and not any(g.is_sparse for g in own):
                norms.append(float(sum(float(g.detach().float().norm()) ** 2 for g in own) ** 0.5))

    def step_ends(self, optimizer: Any) -> None:
        """Write now and then."""
        if moments.steps >= self._next_write:
            self._next_write = moments.steps * 2.0
            self.write()

    # models and data

    def call_begins(self, model: nn.Module, args: Any) -> None:
        """Note a model and the mode it is called in."""
        if forwards.is_aside():
            return
        if torch.is_grad_enabled() and id(model) not in self._models:
            self._models.add(id(model))
            with loss_calls.unseen():
                self._look(model, args)
        elif not torch.is_grad_enabled() and any(_is_on(m) for m in model.modules()):
            self.facts["evaluated_in_train"] += 1

    def _look(self, model: nn.Module, args: Any) -> None:
        if not any(p.requires_grad for p in model.parameters()):
            return
        self.facts["models"].append(type(model).__name__)
        self.facts["layers"] += [told for m in model.modules() if (told := _spread(m))]
        shares = [float(m.p) for m in model.modules() if hasattr(m, "p") and type(m.p) is float]
        shares += [float(m.dropout) for m in model.modules() if _has_own_dropout(m)]
        self.facts["dropout"] = max([self.facts["dropout"], *shares])
        given = next((a for a in args if isinstance(a, torch.Tensor)), None)
        if self.facts["inputs"] is None and given is not None and given.is_floating_point():
            self.facts["inputs"] = _moments(given)

    def compare(self, call: LossCall) -> None:
        """Note what a step of training is about, and keep examples."""
        if call.has_gradient and call.name != "equality":
            self.facts["loss_kind"] = self.facts["loss_kind"] or call.kind
            model = loss_calls.last.model()
            if model is not None and not model.training:
                live = [m for m in model.modules() if isinstance(m, _SENSITIVE)]
                self.facts["trained_in_eval"] += bool(live)
            if call.kind == VALUES and self.facts["targets"] is None:
                self.facts["targets"] = _moments(call.target.reshape(len(call.target), -1))
            if call.kind == CLASSES and call.given.ndim > 1:
                self.facts["classes"] = int(call.given.shape[1])
            given = next((a for a in loss_calls.last.args if isinstance(a, torch.Tensor)), None)
            if given is not None and given.ndim:
                self.facts["rows"] = max(self.facts["rows"], len(given))
        if self.examples is not None:
            self.examples.take(call)

    def loader_opens(self, loader: Any) -> None:
        """Note a loader that may feed the training."""
        if id(loader) in self._loaders:
            return
        self._loaders.add(id(loader))
        data = loader.dataset
        self.facts["loaders"].append(
            {
                "batch_size": loader.batch_size,
                "sampler": type(sampler_of(loader)).__name__,
                "is_stream": isinstance(data, IterableDataset),
                "size": None if isinstance(data, IterableDataset) else len(data),
            }
        )

    # functions

    def clips(self, norm: float, limit: float) -> None:
        """Note that gradients were clipped, or were within the limit."""
        self.facts["clip_calls"] += 1
        self.facts["clipped"] += norm > limit
        self.facts["clip_limit"] = limit

    def write(self) -> None:
        """Write what is known to the folder of the recording."""
        folder = os.environ.get("TRAINDX_RECORDING", "")
        if not folder or os.getpid() != self._pid or not moments.steps:
            return
        target = Path(folder, f".census-{self._pid}.json")
        draft = target.with_suffix(".draft")
        draft.write_text(json.dumps(self.facts), encoding="utf-8")
        draft.replace(target)
        if self.examples is not None:
            self.examples.write(Path(folder, f".examples-{self._pid}.bin"))


class Examples:
    """Examples as the model is given them, for models that are fitted in a moment."""

    def __init__(self) -> None:
        self._kept: dict[str, list[Any]] = {"x": [], "y": [], "held_x": [], "held_y": []}
        self._count = {"": 0, "held_": 0}
        self._of: dict[str, set[Any]] = {"held_": set()}

    def take(self, call: LossCall) -> None:
        """Keep the examples of a comparison whose inputs and targets go row by row."""
        part = "" if call.has_gradient else "held_"
        given = next((a for a in loss_calls.last.args if isinstance(a, torch.Tensor)), None)
        if given is None or given.ndim < 2 or self._count[part] >= MOST_ROWS:
            return
        rows = len(given)
        if call.target.ndim < 1 or len(call.target) != rows or not rows:
            return
        x = given.detach().reshape(rows, -1)
        y = call.target.detach().reshape(rows, -1)
        if x.shape[1] > MOST_NUMBERS or y.shape[1] > MOST_NUMBERS:
            return
        room = MOST_ROWS - self._count[part]
        self._kept[f"{part}x"].append(x[:room].float().cpu().clone())
        self._kept[f"{part}y"].append(y[:room].double().cpu().clone())
        self._count[part] += min(room, rows)

    def write(self, path: Path) -> None:
        """Write them: a line that names the tables and their shapes, and their numbers."""
        joined = {k: _joined(v) for k, v in self._kept.items()}
        tables = {k: v.double().contiguous() for k, v in joined.items() if v is not None}
        draft = path.with_suffix(".draft")
        with draft.open("wb") as file:
            file.write(json.dumps({k: list(v.shape) for k, v in tables.items()}).encode() + b"\n")
            for table in tables.values():
                file.write(ctypes.string_at(table.data_ptr(), table.nbytes))
        draft.replace(path)


def _joined(parts: list[torch.Tensor]) -> torch.Tensor | None:
    same = [p for p in parts if p.shape[1] == parts[0].shape[1]]
    return torch.cat(same) if same else None


def _described(optimizer: torch.optim.Optimizer, rate: float) -> dict[str, Any]:
    groups = optimizer.param_groups
    decay = max((float(g.get("weight_decay") or 0.0) for g in groups), default=0.0)
    count = sum(p.numel() for p in moments.parameters_of(optimizer))
    return {
        "type": type(optimizer).__name__, "first": rate, "least": rate, "most": rate, "last": rate,
        "decay": decay, "steps": 0, "numbers": count,
        "momentum": float(groups[0].get("momentum") or 0.0) if groups else 0.0,
    }  # fmt: skip


def _is_on(module: nn.Module) -> bool:
    if not module.training or not isinstance(module, _SENSITIVE):
        return False
    return getattr(module, "p", 1.0) != 0.0


def _has_own_dropout(module: nn.Module) -> bool:
    return type(module.__dict__.get("dropout")) is float


def _spread(module: nn.Module) -> dict[str, Any] | None:
    """Return how the weights of a layer spread, against what torch gives new ones."""
    weight = getattr(module, "weight", None)
    if not isinstance(weight, torch.Tensor) or weight.ndim < 2 or weight.is_sparse:
        return None
    if not callable(getattr(module, "reset_parameters", None)):
        return None
    fan = weight[0].numel()
    usual = 1.0 if isinstance(module, nn.Embedding) else (3.0 * fan) ** -0.5
    values = weight.detach().float()
    own = float(values.std()) if values.numel() > 1 else usual
    return {"type": type(module).__name__, "ratio": own / usual, "mean": float(values.mean())}


def _moments(values: torch.Tensor) -> dict[str, Any]:
    """Return how the features of a batch lie: the extremes of their means and deviations."""
    rows = values.detach().double()
    if rows.ndim > 2:
        rows = rows.movedim(1, -1).reshape(-1, rows.shape[1])
    if rows.ndim < 2 or len(rows) < 2:
        return {"mean": float(rows.abs().mean()), "most": 1.0, "least": 1.0, "size": 1}
    spread = rows.std(0)
    return {
        "mean": float(rows.mean(0).abs().max()), "most": float(spread.max()),
        "least": float(spread.min()), "middle": float(spread.median()), "size": rows.shape[1],
    }  # fmt: skip


def apply(values: dict[str, Any], report: ChangeReport) -> None:
    """Begin to note."""
    census = Census(keeps_data=bool(values.get("keeps_data")))
    moments.on("step_begins", report, census.step_begins)
    moments.on("update", report, census.update)
    moments.on("step_ends", report, census.step_ends)
    forwards.on_begin(report, census.call_begins, is_first=True)
    loss_calls.on_loss(report, census.compare)
    data_loaders.on_open(report, census.loader_opens)
    write = report.guard(census.write)
    moments.at_end(write)
    atexit.register(write)
    _watch_functions(census, report)


def _watch_functions(census: Census, report: ChangeReport) -> None:
    facts = census.facts

    @report.guard
    def clipped(given: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        limit = kwargs.get("max_norm", given[1] if len(given) > 1 else None)
        if limit is not None:
            census.clips(float(result), float(limit))

    @report.guard
    def clipped_values(given: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        facts["clip_calls"] += 1
        facts["clipped"] += 1

    @report.guard
    def dropped(given: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        share = kwargs.get("p", given[1] if len(given) > 1 else 0.5)
        if kwargs.get("training", given[2] if len(given) > 2 else True):
            facts["dropout"] = max(facts["dropout"], float(share))

    @report.guard
    def smoothed(given: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        smoothing = float(kwargs.get("label_smoothing") or 0.0)
        facts["smoothing"] = max(facts["smoothing"], smoothing)

    @report.guard
    def loaded(given: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        facts["has_loaded"] = facts["has_loaded"] or not moments.steps

    @report.guard
    def cast(given: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        facts["autocast"] = facts["autocast"] or bool(getattr(given[0], "_enabled", False))

    utils: Any = nn.utils
    replace(utils, "clip_grad_norm_", _followed(clipped))
    replace(utils, "clip_grad_value_", _followed(clipped_values))
    for name in DROPOUTS:
        replace(functional, name, _followed(dropped))
    replace(functional, "cross_entropy", _followed(smoothed))
    replace(nn.Module, "load_state_dict", _followed(loaded))
    replace(torch.amp.autocast_mode.autocast, "__init__", _followed(cast))


def _followed(look: Callable[..., Any]) -> Callable[[Any], Any]:
    """Return what makes a function one that is looked at after each call."""

    def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def followed(*args: Any, **kwargs: Any) -> Any:
            result = original(*args, **kwargs)
            if not torch.compiler.is_compiling():
                look(args, kwargs, result)
            return result

        return followed

    return wrap
