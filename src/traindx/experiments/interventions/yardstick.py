"""Measures a rerun in a way that no change can fake: plain losses and scores, in evaluation.

Changes nothing. What the program itself evaluates is measured as it goes by: without smoothing or
weights, by the targets as the program has them. Beside that, the first training batches are kept
and looked at again in evaluation mode now and then, with the random state put back afterwards.
"""

from __future__ import annotations

import atexit
import json
import os
from pathlib import Path
from typing import Any

import torch

from . import data_loaders, forwards, loss_calls, moments
from .change_report import ChangeReport
from .fingerprints import row_prints
from .loss_calls import LossCall
from .plain_losses import Measured, measure

KEPT = 6  # training batches that are looked at again
KEPT_BYTES = 64 << 20
RATIO = 1.3  # between the steps of two looks
MAX_TOLD = 20_000  # measurements of a rerun
WRITE_RATIO = 1.5
MARKED = 16  # examples of a batch by which it is known again
MOST_MARKS = 1000
SHARED = 0.03  # of the examples of an evaluation; more are no chance
LOOKED_UP = 256  # examples of an evaluation

Key = tuple[Any, ...]


class Yardstick:
    """What was measured in this process."""

    def __init__(self) -> None:
        self.rows = 0  # examples that gradients were taken of
        self.told: list[dict[str, Any]] = []
        self.kept: list[tuple[Any, Any, LossCall]] = []
        self._kept_bytes = 0
        self._open: dict[Key, Measured] = {}
        self._waiting: list[LossCall] = []  # since the last backward pass, with a gradient
        self._sources = TrainedData()
        self._trains_in_train_mode = False
        self._next_look = self._next_write = 1.0
        self._pid = os.getpid()

    def compare(self, call: LossCall) -> None:
        """Measure an evaluation, or remember what may be a step of training."""
        is_training = call.has_gradient
        if is_training and self._trains_in_train_mode and not loss_calls.last.is_training:
            is_training = False  # evaluated without no_grad
        if is_training:
            if call.name != "equality":
                self._waiting.append(call)
            return
        found = measure(call.kind, call.given, call.target, is_share=call.is_share)
        if found is not None:
            key = (*self._sources.origin(), call.kind, call.name)
            self._open.setdefault(key, Measured()).add(*found)

    def backward_begins(self, tensors: Any) -> None:
        """Close the evaluations that came before; take in what is trained on."""
        with loss_calls.unseen():
            self._begin_training()

    def _begin_training(self) -> None:
        self._close()
        waiting, self._waiting = self._waiting, []
        if loss_calls.last.is_training:
            self._trains_in_train_mode = True
        if not waiting:
            return
        self._sources.trains()
        self.rows += _rows(waiting[0])
        self._keep(waiting[0])

    def _keep(self, call: LossCall) -> None:
        last = loss_calls.last
        model = last.model()
        if len(self.kept) >= KEPT or model is None or not loss_calls.is_output(call.given):
            return
        args = _copied(last.args)
        size = sum(a.nbytes for a in args if isinstance(a, torch.Tensor))
        if self._kept_bytes + size <= KEPT_BYTES:
            self._kept_bytes += size
            kept = LossCall(
                call.kind, call.given.detach(), call.target.detach().clone(), "kept",
                is_share=call.is_share,
            )  # fmt: skip
            self.kept.append((last.model, args, kept))

    def step_ends(self, optimizer: Any) -> None:
        """Look at the kept batches now and then."""
        if moments.steps >= self._next_look:
            self._next_look = max(moments.steps + 1.0, moments.steps * RATIO)
            self.look()
        if moments.steps >= self._next_write:
            self._next_write = max(moments.steps + 1.0, moments.steps * WRITE_RATIO)
            self.write()

    def look(self) -> None:
        """Measure the batches that are kept, in evaluation mode."""
        if not self.kept:
            return
        measured = Measured()
        with loss_calls.unseen(), Aside():
            for reference, args, call in self.kept:
                found = _looked_at(reference(), args, call)
                if found is not None:
                    measured.add(*found)
        if measured.count:
            self._tell("kept", measured, is_trained_on=True, kind=self.kept[0][2].kind)

    def _close(self) -> None:
        for (_, is_trained_on, kind, source), measured in self._open.items():
            self._tell(source, measured, is_trained_on=is_trained_on, kind=kind)
        self._open.clear()

    def _tell(self, source: str, measured: Measured, *, is_trained_on: bool, kind: str) -> None:
        if len(self.told) < MAX_TOLD:
            about = {"source": source, "kind": kind, "is_trained_on": is_trained_on}
            self.told.append({"step": moments.steps, "rows": self.rows, **about, **measured.told()})

    def finish(self) -> None:
        """Close what is open and look a last time."""
        self._close()
        self.look()
        self.write()

    def write(self) -> None:
        """Write what is known to the folder of the recording."""
        folder = os.environ.get("TRAINDX_RECORDING", "")
        if not folder or os.getpid() != self._pid or not moments.steps:
            return
        target = Path(folder, f".yardstick-{self._pid}.json")
        draft = target.with_suffix(".draft")
        told = {"steps": moments.steps, "rows": self.rows, "told": self.told}
        draft.write_text(json.dumps(told), encoding="utf-8")
        draft.replace(target)


class Aside:
    """A moment that is no part of the program: without gradients, the random state put back."""

    def __enter__(self) -> None:
        self._state = torch.get_rng_state()
        self._cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else []
        self._no_grad = torch.no_grad()
        self._no_grad.__enter__()
        self._quiet = [s for s in moments.sessions() if not s.is_replaying]
        for session in self._quiet:
            session.is_replaying = True

    def __exit__(self, *error: Any) -> None:
        for session in self._quiet:
            session.is_replaying = False
        self._no_grad.__exit__(None, None, None)
        torch.set_rng_state(self._state)
        if self._cuda:
            torch.cuda.set_rng_state_all(self._cuda)


def _looked_at(model: Any, args: Any, call: LossCall) -> Any:
    if model is None:
        return None
    modes = [(m, m.training) for m in model.modules()]
    try:
        for module, _ in modes:
            module.training = False
        output = forwards.called_aside(model, _copied(args))
    finally:
        for module, was in modes:
            module.training = was
    given = getattr(output, "logits", output)
    if not isinstance(given, torch.Tensor) or given.numel() != call.given.numel():
        return None
    return measure(call.kind, given.reshape(call.given.shape), call.target, is_share=call.is_share)


def _copied(args: Any) -> Any:
    return tuple(a.detach().clone() if isinstance(a, torch.Tensor) else a for a in args)


def _rows(call: LossCall) -> int:
    first = next((a for a in loss_calls.last.args if isinstance(a, torch.Tensor)), call.given)
    return int(first.shape[0]) if first.ndim else 1


class TrainedData:
    """Which data is trained on: by the data set of a loader, or else by the examples themselves."""

    def __init__(self) -> None:
        self._sets: set[int] = set()
        self._marks: set[str] = set()
        self._given = 0  # batches of loaders until the last backward pass
        self._known: dict[Key, bool] = {}

    def trains(self) -> None:
        """Take in what the backward pass that begins is about."""
        data = self._data()
        if data is not None:
            self._sets.add(data)
        elif len(self._marks) < MOST_MARKS:
            self._marks.update(_marks())
        self._given = data_loaders.batches_given()

    def origin(self) -> tuple[int, bool]:
        """Return what tells apart the data of the last model call, and whether it is trained on."""
        data = self._data()
        if data is not None:
            return data, data in self._sets
        given = next((a for a in loss_calls.last.args if isinstance(a, torch.Tensor)), None)
        if given is None:
            return 0, False
        key = (given.data_ptr(), tuple(given.shape))
        if key not in self._known:
            marks = _marks(LOOKED_UP)
            shared = sum(m in self._marks for m in marks)
            self._known[key] = shared > max(1, SHARED * len(marks))
        return hash(key), self._known[key]

    def _data(self) -> int | None:
        """Return the data set of the batch that a loader has given since the last backward pass."""
        if data_loaders.batches_given() == self._given:
            return None
        return data_loaders.current_data()


def _marks(most: int = MARKED) -> list[str]:
    given = next((a for a in loss_calls.last.args if isinstance(a, torch.Tensor)), None)
    if given is None or given.ndim < 2:
        return []
    stride = max(1, len(given) // most)
    return row_prints(given.detach()[::stride][:most])


def apply(values: dict[str, Any], report: ChangeReport) -> None:
    """Begin to measure."""
    data_loaders.watch()
    yardstick = Yardstick()
    loss_calls.on_loss(report, yardstick.compare)
    moments.on("backward_begins", report, yardstick.backward_begins)
    moments.on("step_ends", report, yardstick.step_ends)
    finish = report.guard(yardstick.finish)
    moments.at_end(finish)
    atexit.register(finish)
