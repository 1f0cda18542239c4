"""Steps that are let pass: what is done at them is to keep the loss and what a replay would need.

A loss or a gradient that is no number ends the rest, so each of these hands over to the session
when it is not sure. Where steps are so short that even this is too much, some are blind: what they
are given is held, in case they crash, and nothing is asked. Code that runs once per step runs with
cold caches: what is spread over functions elsewhere stands in one place here.
"""

from __future__ import annotations

from math import isfinite, nan
from threading import get_ident
from time import get_clock_info, perf_counter, thread_time
from typing import TYPE_CHECKING, Any

import torch

from . import host
from .budget import BLOCK
from .current_step import MAX_FORWARDS, Forward

if TYPE_CHECKING:
    from .session import Session

TIMED_EVERY = 16  # steps: reading the clock at every one would cost as much as the rest

# Nothing here waits, and on a busy machine the wall clock tells what others did meanwhile.
_now = thread_time if get_clock_info("thread_time").resolution < 1e-6 else perf_counter
_random_state = torch.default_generator.get_state
_has_grad = torch.is_grad_enabled


class SkippedSteps:
    """Listens at the steps that pass; every method tells whether it is done with the event."""

    __slots__ = ("session",)

    def __init__(self, session: Session) -> None:
        self.session = session

    def batch_arrives(self, iterator: Any, batch: Any) -> bool:
        """Hold the batch."""
        session = self.session
        began = _now() if session.is_timed else 0.0
        try:
            if get_ident() != session.thread:
                return False
            session.ticks += 1
            session.loaders.arrives(iterator, batch, session.steps)
            session.now.batch = batch
            if began:
                session.budget.passes(TIMED_EVERY * (_now() - began))
            return True
        except Exception as error:  # the boundary to the training, as in the session
            return self._end(error)

    def forward_begins(self, module: Any, name: str, args: Any, kwargs: Any) -> bool:
        """Hold what the model is given, and the random state at the first call of the step."""
        session = self.session
        began = _now() if session.is_timed else 0.0
        try:
            if get_ident() != session.thread:
                return False
            has_grad = _has_grad()
            if not has_grad and session.evaluations.are_wanted:
                return False
            session.ticks += 1
            session.forwards += 1
            if has_grad:
                now = session.now
                if now.is_applied or not now.inputs:
                    now.is_applied = False
                    now.inputs = [Forward(name, module, args, kwargs)]
                    now.rng_state = None if session.is_blind else _random_state()
                elif len(now.inputs) < MAX_FORWARDS:
                    now.inputs.append(Forward(name, module, args, kwargs))
            if began:
                session.budget.passes(TIMED_EVERY * (_now() - began))
            return True
        except Exception as error:  # the boundary to the training, as in the session
            return self._end(error)

    def backward_begins(self, loss: Any) -> bool:
        """Let a loss pass that is a number, where that can be told without waiting."""
        session = self.session
        began = _now() if session.is_timed else 0.0
        try:
            if (
                get_ident() != session.thread
                or session.in_backward
                or session.evaluations.is_open
                or type(loss) is not torch.Tensor
            ):
                return False
            if loss.is_cpu:
                value = loss.item() if loss.numel() == 1 else nan
                if not isfinite(value) and not session.is_escalated:
                    return False
                if session.passed_loss is None or not session.depth:  # a closure asks repeatedly
                    session.passed_loss = value + (session.passed_loss or 0.0)
            session.ticks += 1
            session.backwards += 1
            session.now.is_applied = True
            if began:
                session.budget.passes(TIMED_EVERY * (_now() - began))
            return True
        except Exception as error:  # the boundary to the training, as in the session
            return self._end(error)

    def step_begins(self, optimizer: torch.optim.Optimizer) -> bool:
        """Let a step pass whose gradients are numbers."""
        session = self.session
        began = _now() if session.is_timed else 0.0
        try:
            if get_ident() != session.thread or session.depth:
                return False
            session.passing = owner = session.known.owner_of(optimizer)
            is_asked = not (session.uses_scaler or session.is_escalated)
            if is_asked and (owner is None or not owner.is_gradient_still_sound()):
                return False
            session.ticks += 1
            session.depth = 1
            if began:
                session.budget.passes(TIMED_EVERY * (_now() - began))
            return True
        except Exception as error:  # the boundary to the training, as in the session
            return self._end(error)

    def step_ends(self) -> bool:
        """Count the step; the last one that passes is left to the session."""
        session = self.session
        began = _now() if session.is_timed else 0.0
        try:
            if get_ident() != session.thread or session.depth != 1 or session.idle == 1:
                return False
            owner = session.passing
            if owner is None or not owner.steps & 63:  # a fingerprint may be due
                return False
            session.depth = 0
            if not session.uses_scaler:  # a scaled loss is not the loss
                session.rows.add_passed(owner.number, owner.steps, session.passed_loss)
            session.passed_loss = None
            session.ticks += 1
            session.steps += 1
            session.idle -= 1
            owner.steps += 1
            budget = session.budget
            budget.passed += 1
            session.is_timed = (budget.passed - budget.blind) % TIMED_EVERY == 1
            if budget.blocks > 1 and budget.is_blind(session.idle):
                session.is_blind, session.is_timed = True, False
            if began:
                budget.passes(TIMED_EVERY * (_now() - began))
            return True
        except Exception as error:  # the boundary to the training, as in the session
            return self._end(error)

    def blind_step_ends(self, optimizer: torch.optim.Optimizer) -> bool:
        """Count a step of which nothing was asked: neither its loss nor its beginning was told."""
        session = self.session
        try:
            if get_ident() != session.thread:
                return False
            owner = session.passing
            if owner is None or owner.optimizer() is not optimizer:
                session.passing = owner = session.known.owner_of(optimizer)
            if owner is None or not owner.steps:
                session.budget.blind += 1
                session.wake()  # its first step, or one inside the step of another optimizer
                return True
            if not owner.steps & 63 or session.evaluations.is_open:
                return False
            session.ticks += 1
            session.steps += 1
            session.idle -= 1
            session.now.is_applied = True
            owner.steps += 1
            budget = session.budget
            budget.passed += 1
            budget.blind += 1
            if not (session.idle + 1) % BLOCK:
                session.is_blind = budget.is_blind(session.idle)
            return True
        except Exception as error:  # the boundary to the training, as in the session
            return self._end(error)

    def _end(self, error: Exception) -> bool:
        if host.is_from_a_signal(error):
            raise error
        self.session.turn_off(error)
        return True
