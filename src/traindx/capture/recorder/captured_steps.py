"""Decides which steps are captured whole, and where a capture begins and ends."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from . import host
from .step_capture import StepCapture, name_held, names_of

if TYPE_CHECKING:
    from .knowledge import Owner
    from .session import Session

FIRST = 1  # the second step: models and optimizers are known by then
UNSTEPPED = 3  # backward passes, until an optimizer that steps is not waited for any more
LATER = 50  # steps; the model has left its initial state
ASIDE = 500  # operations without gradients that may come first in a step of training
MOST = {"training": 2, "alert": 1, "evaluation": 2}
LARGEST = 200_000_000  # parameters: on a larger model a single look at values takes too long


class Captures:
    """The captures of one process: at most one at a time, a few in all."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._active: StepCapture | None = None
        self._pending = ""  # the kind that begins with the next batch
        self._taken = dict.fromkeys(MOST, 0)
        self._stepped: set[int] = set()
        self._backwards = 0  # before any step
        self._was = ""  # what an evaluation was begun as
        self._is_complete = False
        self._is_on_stack = False
        self._handles: list[Callable[[], None]] = []  # of calls whose result is not there yet
        self._skipped = ""

    @property
    def is_busy(self) -> bool:
        """Tell whether a step is being captured, or about to be: none may pass unseen then."""
        return self._active is not None or bool(self._pending)

    def is_ours(self) -> bool:
        """Tell whether nothing but our own mode is on the stack of modes."""
        return self._is_on_stack and torch._C._len_torch_dispatch_stack() == 1

    # --- events ---------------------------------------------------------------------------------

    def step_ends(self, owner: Owner) -> None:
        """A step was taken: the capture is complete, or it is time for the next one."""
        if self._active is not None:
            self._count(owner)
            if self._is_complete and not self._has_next():
                self.finish()
            return
        taken = self._taken["training"]
        if not taken or (taken == 1 and self._session.steps >= LATER and self._is_affordable()):
            self._want("training")

    def _has_next(self) -> bool:
        """Tell whether the next step will be heard of: by its batch, or the call of a model."""
        return self._session.loaders.is_open() or bool(self._session.known.models)

    def alerted(self) -> None:
        """Something went wrong: the next step is worth a look."""
        if self._active is None and not self._pending:
            self._want("alert")

    def fetch_begins(self) -> None:
        """A batch is fetched: what a data set does in this process is no part of the step."""
        if self._active is not None:
            if self._is_complete or self._active.kind == "evaluation":
                self.finish()
            else:
                self._leave()

    def batch_arrives(self, previous: Any, batch: Any) -> None:
        """A batch is there; some libraries fetch one ahead and train on the previous one."""
        if self._active is None and self._pending:
            self._begin(self._pending)
        elif self._active is not None:
            self._enter()
        if self._active is not None:
            self._active.is_batch(previous, batch)

    def forward_begins(self, module: nn.Module, *, has_grad: bool) -> None:
        """A model is called."""
        is_training = has_grad and module.training
        if self._active is not None and not has_grad and self._active.is_untouched:
            self._reclassify(self._active)
        elif self._active is not None and has_grad and self._was:
            self._take_back(self._active)
        elif self._pending and has_grad:  # without a loader, or on the batch of before
            self._begin(self._pending)
            self._note_last_batch()
        if self._active is not None and (self._is_complete or self._is_other(is_training)):
            postponed = self._was
            self.finish()
            self._pending = postponed  # until the rollout is over
        if self._active is None and not is_training and not has_grad:
            self._see_evaluation()
        if self._active is not None:
            self._hear_result(self._active, module)

    def _hear_result(self, capture: StepCapture, module: nn.Module) -> None:
        """Listen, this once, to what a model returns."""

        def returned(module: nn.Module, args: Any, result: Any) -> None:
            handle.remove()
            capture.is_output(result)

        handle = module.register_forward_hook(returned)
        self._handles.append(handle.remove)

    def _reclassify(self, capture: StepCapture) -> None:
        """The batch that was waited for is one of an evaluation."""
        if capture.kind != "evaluation":
            self._was = capture.kind
            self._call(capture, "evaluation")

    def _take_back(self, capture: StepCapture) -> None:
        """It was a part of training: a teacher that is asked first, or a short rollout."""
        kind, self._was = self._was, ""
        if capture.size <= ASIDE:
            self._call(capture, kind)
        else:
            self.finish()
            self._begin(kind)
            self._note_last_batch()

    def _call(self, capture: StepCapture, kind: str) -> None:
        self._taken[capture.kind] -= 1
        self._taken[kind] += 1
        capture.kind = kind

    def _note_last_batch(self) -> None:
        if self._active is not None and self._session.now.batch is not None:
            self._active.is_batch(None, self._session.now.batch)

    def _is_other(self, is_training: bool) -> bool:
        """Tell whether an evaluation goes on to its next batch, or training goes on after it."""
        if self._active is None or self._active.kind != "evaluation":
            return False
        if self._was:
            return self._active.size > ASIDE
        return is_training or self._active.size > 0

    def _see_evaluation(self) -> None:
        if self._taken["evaluation"] < MOST["evaluation"] and not self._pending:
            self._begin("evaluation")
            self._note_last_batch()

    def backward_begins(self, tensors: Any) -> None:
        """The loss is known."""
        if self._active is not None:
            if self._active.kind == "evaluation" or self._is_complete:
                self.finish()
            else:
                self._active.is_loss(tensors)

    def backward_ends(self) -> None:
        """Gradients are there; where no optimizer is known, this is what there is of a step."""
        if any(owner.steps for owner in self._session.known.owners.values()):
            return
        if self._active is not None and self._active.kind != "evaluation":
            self._is_complete = True
            if not self._has_next():
                self.finish()
        elif self._active is None and not self._pending and not self._taken["training"]:
            self._backwards += 1
            if self._backwards > UNSTEPPED:
                self._pending = "training"
                if not self._has_next():
                    self._begin("training")

    def finish(self) -> None:
        """Write the capture, complete or not."""
        capture, self._active = self._active, None
        self._pending = self._was = ""
        if capture is None:
            return
        self._leave(capture)
        self._session.budget.spent_s += capture.cost_s
        self._session.clock.forgive(capture.cost_s)
        is_telling = capture.size or capture.why
        if is_telling and self._session.writer is not None:
            self._session.rows.drain(self._session.writer, at_once=True)
            self._session.writer.write("captured", capture.record(), at_once=True)

    def abandon(self) -> None:
        """Leave the stack of modes alone from now on."""
        capture, self._active = self._active, None
        self._pending = self._was = ""
        if capture is not None:
            self._leave(capture)

    # --- beginning and end ----------------------------------------------------------------------

    def _want(self, kind: str) -> None:
        if self._taken[kind] >= MOST[kind]:
            return
        if self._session.loaders.is_open():
            self._pending = kind
        else:
            self._begin(kind)

    def _begin(self, kind: str) -> None:
        self._pending = ""
        self._taken[kind] += 1
        why = self._hindrance()
        if why:
            if why != self._skipped and self._session.writer is not None:
                self._skipped = why
                told = {"kind": kind, "step": self._session.steps, "why": why}
                self._session.writer.write("captured", told)
            return
        self._active = self._new(kind)
        self._stepped, self._is_complete = set(), False
        self._enter()

    def _new(self, kind: str) -> StepCapture:
        known = self._session.known
        models = [m for k in known.models if (m := k.module()) is not None]
        owners = [o for owner in known.owners.values() if (o := owner.optimizer()) is not None]
        tensors, modules = names_of(models)
        name_held(owners, tensors, sys._getframe(1))
        return StepCapture(kind, self._session.steps, tensors, modules)

    def _count(self, owner: Owner) -> None:
        """A logical step is one step of every optimizer, or a second one of the same."""
        known = {o.number for o in self._session.known.owners.values() if o.steps}
        self._stepped.add(owner.number)
        self._is_complete = self._stepped >= known

    def _enter(self) -> None:
        if self._active is not None and not self._is_on_stack:
            if torch._C._len_torch_dispatch_stack():
                self.abandon()  # the program has put a mode of its own there meanwhile
                return
            self._active.__enter__()
            self._is_on_stack = True

    def _leave(self, capture: StepCapture | None = None) -> None:
        while self._handles:
            self._handles.pop()()
        capture = capture or self._active
        if capture is None or not self._is_on_stack:
            return
        size = torch._C._len_torch_dispatch_stack()
        if size and torch._C._get_dispatch_stack_at(size - 1) is capture:
            capture.__exit__(None, None, None)
            self._is_on_stack = False
        else:
            capture.is_open = False  # a mode of the program lies above; ours only passes on now

    def _is_affordable(self) -> bool:
        return not self._session.budget.is_used_up()

    def _hindrance(self) -> str:
        """Return why a step cannot be seen without a change of what it does; "" if it can."""
        if self._is_on_stack or torch._C._len_torch_dispatch_stack():
            return "another dispatch mode is active"
        if host.is_traced([]) or torch._C._functorch.peek_interpreter_stack() is not None:
            return "the step is being traced"
        if _is_compiled():
            return "the model is compiled, so its operations are not dispatched one by one"
        models = [m for k in self._session.known.models if (m := k.module()) is not None]
        if any(isinstance(part, torch.jit.ScriptModule) for m in models for part in m.modules()):
            return "a part of the model is scripted"
        if sum(p.numel() for m in models for p in m.parameters()) > LARGEST:
            return "the model is too large to look at every value"
        if torch.cuda.is_available() and torch.cuda.is_current_stream_capturing():
            return "the step is being captured as a CUDA graph"
        return ""


def _is_compiled() -> bool:
    """Tell whether torch.compile was used: under a mode of ours nothing would run compiled."""
    frames = sys.modules.get("torch._dynamo.eval_frame")
    backends: dict[int, Any] = getattr(frames, "cached_backends", {})
    return any(backend is not None for backend in backends.values())
