"""torchmortem: its example, with the default sampling."""

from __future__ import annotations

import importlib
from contextlib import ExitStack

import torch

from bench.overhead_programs.job import Job, Step


def attach(job: Job, stack: ExitStack) -> Step:
    """Enter the autopsy, and tell it of every step."""
    torchmortem = importlib.import_module("torchmortem")
    autopsy = stack.enter_context(torchmortem.Autopsy(job.model, optimizer=job.optimizer))

    def step(inputs: torch.Tensor, targets: torch.Tensor) -> None:
        job.optimizer.zero_grad()
        loss = job.criterion(job.model(inputs), targets)
        loss.backward()
        job.optimizer.step()
        autopsy.step(loss=loss.item())

    return step
