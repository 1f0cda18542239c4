"""One training process as the recorder sees it: events come in, records go out."""

from __future__ import annotations

import os
import sys
import threading
from math import isfinite, nan
from time import perf_counter
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from . import host, loaded_weights, loader_passes, records, samples, step_detail
from .budget import Budget
from .captured_steps import Captures
from .current_step import CurrentStep, Forward
from .evaluation_passes import Entrances, Evaluations
from .event_guard import event
from .graph_marks import GraphMarks
from .knowledge import Knowledge, Owner
from .later import Later
from .record_writer import Writer
from .rows import PhaseClock, Rows
from .watchdog import Watchdog

if TYPE_CHECKING:
    from .hooks import Hooks

AT_EPOCHS_S = 1.0
MAX_LOSSES = 4096  # of one step: gradients may be accumulated for ever
PATIENCE = 8  # steps per optimizer until all were looked at; a critic may take several
PACED_AFTER = 20  # steps, before the usual step is known


class Session:
    """What is known of this process so far, and where it is written."""

    def __init__(self, folder: str, *, overhead: float, hang_after_s: float | None) -> None:
        self.folder = os.path.abspath(folder)
        self.budget = Budget(overhead)
        self.hang_after_s = hang_after_s
        self.hooks: Hooks | None = None
        self.given: list[Any] = []  # models and optimizers that were named
        self.is_off = False
        self.reset()

    def reset(self) -> None:
        """Begin anew: at the start, and in the child of a fork."""
        self.writer: Writer | None = None
        self.watchdog: Watchdog | None = None
        self.thread: int | None = None
        self.ticks = 0
        self.steps = self.backwards = self.forwards = 0
        self.known = Knowledge()
        self.loaders = loader_passes.Loaders()
        self.examples = loader_passes.LabelMemory()
        self.evaluations = Evaluations()
        self.entrances = Entrances()
        self.graphs = GraphMarks()
        self.captures = Captures(self)
        self.loads: list[dict[str, Any]] = []  # of weights, that were not told yet
        self.loaded = 0
        self.clock = PhaseClock()
        self.rows = Rows()
        self.now = CurrentStep()
        self.depth = 0  # of optimizer steps inside each other
        self.in_backward = False
        self.uses_scaler = False
        self.scalings = 0
        self.sampled: set[int] = {0}  # optimizers whose next step is looked at
        self.sampled_at = 0
        self.searches = 0  # for models that came into the loss later
        self.seen: dict[str, Any] = {}  # by the look at the graph
        self.is_escalated = False
        self.is_replaying = False  # what happens now is our own doing
        self.told_error: BaseException | None = None
        self.told_names: dict[int, list[str]] = {}
        self.idle = 0  # steps to let pass
        self.is_blind = False  # nothing is asked of the step that passes
        self.passed_loss: float | None = None  # of the step that passes
        self.passing: Owner | None = None  # whose step it is
        self.is_timed = False  # whether what is done at it is timed
        self.counted = self.told_loaders = perf_counter()

    # --- events ---------------------------------------------------------------------------------

    @event
    def loader_begins(self, loader: Any, iterator: Any) -> None:
        if threading.current_thread() is threading.main_thread() or self._is_mine():
            self.loaders.begins(loader, iterator, self.steps)
            records.tell_loaders(self, is_due=False)

    @event
    def fetch_begins(self) -> None:
        if self._is_mine():
            self.captures.fetch_begins()

    @event
    def batch_arrives(self, iterator: Any, batch: Any, waited_s: float) -> None:
        self.ticks += 1
        self.loaders.arrives(iterator, batch, self.steps)
        if not self._is_mine():
            return
        if self.captures.is_busy:
            self.captures.batch_arrives(self.now.batch, batch)
        self.now.batch = batch
        if not self.known.models:  # or else it is kept when a model is called
            self.now.rng_state = torch.get_rng_state()
        self.clock.data += waited_s
        self.clock.mark = perf_counter()

    @event
    def loader_ends(self, iterator: Any) -> None:
        self.loaders.ends(iterator, self.steps)
        records.tell_loaders(self, is_due=False)
        records.tell_counts_sometimes(self, AT_EPOCHS_S)

    @event
    def weights_loaded(self, module: nn.Module, given: Any, result: Any) -> None:
        record = (
            loaded_weights.loaded(module, given, result)
            if self.loaded < loaded_weights.MAX_TOLD
            else None
        )
        if record is not None:
            self.loaded += 1
            self.loads.append({**record, "step": self.steps})
            records.tell_loads(self)

    @event
    def forward_begins(self, module: nn.Module, name: str, args: Any, kwargs: Any) -> None:
        self.ticks += 1
        self.forwards += 1
        is_ours = self.captures.is_ours()
        if not self._is_mine() or host.is_traced([*args, *kwargs.values()], is_ours=is_ours):
            return
        has_grad = torch.is_grad_enabled()
        self.captures.forward_begins(module, has_grad=has_grad)
        forward = Forward(name, module, args, kwargs)
        if has_grad:
            self.now.keep(forward)
        if self.idle and (has_grad or not self.evaluations.are_wanted):
            return
        key = (has_grad, module.training, id(module), self.loaders.current)
        if self.evaluations.forward(key):
            self._end_evaluation(by_backward=False)
            is_usual = has_grad and module.training
            first = {} if is_usual else step_detail.evaluation(self, forward, has_grad=has_grad)
            self.evaluations.begin(key, first)

    @event
    def loss_scaled(self, scaler: Any, loss: Any, scaled: Any) -> None:
        if isinstance(loss, torch.Tensor) and scaler.is_enabled():
            self.uses_scaler = True
            self.scalings += 1
            self.now.scaled = (id(scaled), loss.detach(), scaler)

    @event
    def backward_begins(self, tensors: Any) -> bool:
        self.ticks += 1
        if self.in_backward or torch.compiler.is_compiling() or not self._is_mine():
            return False  # a checkpointed part computes its gradients inside the outer pass
        self.backwards += 1
        loss = tensors if isinstance(tensors, torch.Tensor) else next(iter(tensors), None)
        if not isinstance(loss, torch.Tensor):
            return False
        if self.idle:
            self._end_evaluation(by_backward=True)
            self.now.is_applied = True
            if self.is_escalated or _is_sound(loss):
                return False
            self.wake()
        self.in_backward = True
        if self.writer is None or self.thread is None:
            self._begin(loss)
        self.clock.forward += self.clock.lap()
        self._end_evaluation(by_backward=True)
        self.captures.backward_begins(tensors)
        value = Later(self.now.unscaled(loss))
        if len(self.now.losses.values) < MAX_LOSSES:
            self.now.losses.values.append(value)
        self.now.losses.is_closure = self.depth > 0
        if self.sampled:
            step_detail.look_at_graph(self, loss)
        if value.value is not None and not isfinite(value.value):
            self._escalate("loss", loss)
        self.clock.mark = perf_counter()
        return True

    @event
    def backward_ends(self) -> None:
        self.in_backward = False
        self.now.is_applied = True
        self.clock.backward += self.clock.lap()
        self.captures.backward_ends()
        for owner in self.known.owners.values() if self.sampled else ():
            if owner.number in self.sampled:
                owner.had_gradients = not samples.are_clear(owner.watched())
        owners = self.known.owners.values()
        is_closure = self.depth > 0  # then nothing of ours comes between backward and the update
        is_checked = is_closure and self._is_on_guard()
        if is_checked and not all(owner.is_gradient_sound() for owner in owners):
            self._escalate("gradient", None)
        if not self.steps:
            records.tell_counts_sometimes(self)

    @event
    def gradients_asked(self, outputs: Any, inputs: Any) -> None:
        """Gradients of parameters are computed by `torch.autograd.grad`."""
        wanted = [inputs] if isinstance(inputs, torch.Tensor) else list(inputs)
        is_learnt = any(isinstance(tensor, nn.Parameter) for tensor in wanted)
        self.now.are_asked = self.now.are_asked or is_learnt
        if is_learnt and not self.in_backward and self._is_mine():
            if self.writer is None or self.thread is None:
                self._begin(outputs if isinstance(outputs, torch.Tensor) else None)
            self.captures.backward_begins(outputs)
            self.captures.backward_ends()

    @event
    def gradients_clipped(self, norm: Any, max_norm: Any) -> None:
        if isinstance(norm, torch.Tensor) and self._is_mine() and not self.idle:
            limit = float(max_norm) if isinstance(max_norm, (int, float)) else nan
            self.now.clips(Later(norm), limit)

    @event
    def step_begins(self, optimizer: torch.optim.Optimizer) -> None:
        self.ticks += 1
        if torch.compiler.is_compiling() or not self._is_mine():
            return
        self.depth += 1
        self.clock.mark = perf_counter()
        if self.depth > 1 or (self.idle and self._may_pass(optimizer)):
            return
        if self.writer is None or self.thread is None:
            self._begin(None)  # gradients that came another way than by backward
        owner = self.known.owner_of(optimizer)
        if owner is None and not self.known.is_full:
            self.discover(None)
            owner = self.known.owner_of(optimizer)
        if owner is None:
            return
        self.now.updates(owner.watched())
        if owner.number in self.sampled:
            step_detail.look_at_parameters(self, owner, optimizer)
        if self._is_on_guard() and not owner.is_gradient_sound():
            self._escalate("gradient", None)
        self.clock.mark = perf_counter()

    @event
    def step_ends(self, optimizer: torch.optim.Optimizer) -> None:
        self.ticks += 1
        if torch.compiler.is_compiling() or not self._is_mine():
            return
        self.depth = max(0, self.depth - 1)
        if self.depth:
            return
        self.steps += 1
        owner = self.known.owner_of(optimizer)
        if self.idle:
            self._pass(owner)
            return
        self.clock.optimizer += self.clock.lap()
        if owner is None or self.writer is None:
            return
        if owner.look is not None:
            records.tell_sample(self, owner)
        if not records.tell_step(self, owner, optimizer, self.writer):
            self._escalate("loss", None)
        self._end_step(owner)
        self.captures.step_ends(owner)
        self._plan()

    @event
    def exception_ends(self, kind: Any, error: Any, traceback: Any, thread: str) -> None:
        is_told = error is not None and error is self.told_error
        if issubclass(kind, (KeyboardInterrupt, SystemExit)) or is_told:
            return
        if self.writer is None and host.is_launcher():
            return
        self.told_error = error
        self.captures.finish()
        self.is_replaying = True
        self.idle = 0
        from . import aftermath

        aftermath.record(self, kind, error, traceback, thread)

    # --- what the process is --------------------------------------------------------------------

    def _is_mine(self) -> bool:
        return self.thread is None or self.thread == threading.get_ident()

    def open(self) -> Writer:
        """Return the file of this process, made when there is something to say."""
        if self.writer is None:
            header = host.header()
            os.makedirs(self.folder, exist_ok=True)
            name = f"rank{header['rank']}-{os.getpid()}.jsonl"
            self.writer = Writer(os.path.join(self.folder, name))
            self.writer.write("process", header, at_once=True)
            records.tell_sources(self.writer)
        return self.writer

    def _begin(self, loss: torch.Tensor | None) -> None:
        """Open the file at the first backward pass, and look around."""
        began = perf_counter()
        self.thread = threading.get_ident()
        self.open()
        records.tell_loaders(self)
        records.tell_loads(self)
        self.discover(loss)
        if self.watchdog is None:
            self.watch()
        self.budget.begin(perf_counter() - began)

    def watch(self) -> None:
        """Start to look out for a stall."""
        self.watchdog = Watchdog(
            self._progress,
            lambda record: self.open().write("stall", record, at_once=True),
            self.hang_after_s,
        )
        self.watchdog.start()

    def _progress(self) -> tuple[int, float, int]:
        """Tell the watchdog how far it is; a step that was seen is on the disk a second later."""
        if self.writer is not None:
            self.writer.flush()
        return self.ticks, self.clock.median_s(), self.steps

    def discover(self, loss: torch.Tensor | None) -> None:
        """Find models and optimizers that are not known yet, and tell of them."""
        writer = self.open()
        for kind, record, module in self.known.discover(loss, self.given):
            writer.write(kind, {**record, "step": self.steps})
            if module is not None and self.hooks is not None:
                self.hooks.on_model(module)
        self.sampled |= {o.number for o in self.known.owners.values() if not o.steps}

    # --- what goes wrong, and what is not training ------------------------------------------------

    def _escalate(self, seen_in: str, loss: torch.Tensor | None) -> None:
        if self.is_escalated:
            return
        self.is_escalated = True
        self.captures.finish()
        from . import aftermath

        began = perf_counter()
        self.is_replaying = True
        try:
            aftermath.replay(self, seen_in, loss)
        finally:
            self.is_replaying = False
        self.captures.alerted()
        cost = perf_counter() - began
        self.budget.spent_s -= cost  # once, and not what the budget is about
        self.clock.forgive(cost)

    def _end_evaluation(self, *, by_backward: bool) -> None:
        told = self.evaluations.end(by_backward=by_backward)
        if told is not None and self.writer is not None:
            self.writer.write("evaluation", told)

    # --- pace and end ---------------------------------------------------------------------------

    def _end_step(self, owner: Owner) -> None:
        """Let go of what was held for a step."""
        self.now.let_go()
        self.now.inputs.clear()
        self.seen = {}  # the next backward pass may be another optimizer's
        records.tell_counts_sometimes(self)
        owner.steps += 1
        owner.is_clear = owner.had_gradients = None

    def _plan(self) -> None:
        """Decide whether to look at the next step, or to let some pass unseen."""
        owners = self.known.owners.values()
        if self.sampled and self.steps - self.sampled_at > PATIENCE * len(owners):
            self.sampled = set()  # an optimizer that is not stepped any more, or never was
        if not self.sampled and self.budget.allows(max(owner.steps for owner in owners)):
            self.sampled = {owner.number for owner in owners}
            self.sampled_at = self.steps
        if self.captures.is_busy:
            return
        durations = self.clock.durations
        is_paced = len(durations) >= PACED_AFTER and not self.sampled
        if is_paced and self.budget.is_used_up():
            step_s = sum(durations) / len(durations)
            is_alone = host.rank()[1] == 1  # else all ranks have to see the same steps
            self.idle = self.budget.idle_steps(self.steps, step_s, may_be_blind=is_alone)

    def _pass(self, owner: Owner | None) -> None:
        """Count a step that nobody looks at."""
        self._end_evaluation(by_backward=True)
        self.now.is_applied = True
        if owner is not None:
            if not self.uses_scaler:  # a scaled loss is not the loss
                self.rows.add_passed(owner.number, owner.steps, self.passed_loss)
            self.passed_loss = None
            if self.writer is not None:
                self.rows.drain(self.writer)
                records.tell_fingerprint(self, owner, self.writer)
            owner.steps += 1
        self.idle -= 1
        self.budget.passed += 1
        self.budget.blind += self.is_blind
        self.is_blind = self.budget.is_blind(self.idle)
        if not self.idle:
            self.wake()

    def passes_backward(self) -> int:
        """Return how many there were; a blind step is taken to have as many as the others."""
        heard = self.steps - self.budget.blind
        return round(self.backwards * self.steps / heard) if heard else self.backwards

    def _may_pass(self, optimizer: torch.optim.Optimizer) -> bool:
        """Tell whether a step may go unseen: not the one whose gradients are no numbers."""
        owner = self.known.owner_of(optimizer) if self._is_on_guard() else None
        if owner is None or owner.is_gradient_sound():
            return True
        self.wake()
        return False

    def _is_on_guard(self) -> bool:
        return not self.uses_scaler and not self.is_escalated

    def wake(self) -> None:
        """See the steps again."""
        self.idle = 0
        self.is_blind = False
        self.passed_loss = None
        self.clock.restart(self.budget.spent_s)
        self.now.let_go()
        self.in_backward = False

    def turn_off(self, error: BaseException) -> None:
        """Stop recording for good, and say so once."""
        self.is_off = True
        self.idle = 0
        why = f"{type(error).__name__}: {error}"
        print(f"traindx: recording stopped: {why[:300]}", file=sys.stderr)
        try:
            self.captures.abandon()
            records.tell_counts(self, why_off=why[:1000])
            if self.watchdog is not None:
                self.watchdog.stop()
            if self.hooks is not None:
                self.hooks.remove()
        except Exception:  # it may be the disk that failed
            return

    def finish(self) -> None:
        """Write what is left; the process ends, or the recording does."""
        if self.is_off:
            return
        self.is_off = True
        self.idle = 0
        try:
            if self.watchdog is not None:
                self.watchdog.stop()
            self.captures.finish()
            if self.writer is None and self.loaders.untold and self._is_mine():
                self.open()  # it read data and learnt nothing: its source may tell why
            if self.writer is not None:
                self._end_evaluation(by_backward=False)
                records.tell_unstepped(self, self.writer)
                self.rows.drain(self.writer, at_once=True)
                records.tell_loaders(self)
                records.tell_sources(self.writer)
                records.tell_counts(self, is_end=True)
                self.writer.close()
        except Exception as error:  # the last boundary: the exit code is the user's
            print(f"traindx: recording ended early: {error}", file=sys.stderr)

    def forked(self) -> None:
        """Begin anew in the child of a fork, which may be a worker or a rank of its own."""
        if not self.is_off:
            self.budget = Budget(self.budget.share)
            if self.hooks is not None:
                self.hooks.leave_models()
            self.captures.abandon()
            self.reset()


def _is_sound(loss: torch.Tensor) -> bool:
    """Tell whether a loss is a number, where that can be told without waiting."""
    if loss.device.type != "cpu" or loss.numel() != 1 or type(loss) is not torch.Tensor:
        return True
    return isfinite(loss.item())
