"""TraceML: its plain PyTorch example, under its own launcher."""

from __future__ import annotations

import importlib
from contextlib import ExitStack

import torch

from bench.overhead_programs.job import Job, Step


def attach(job: Job, stack: ExitStack) -> Step:
    """Initialise, and trace every step."""
    traceml = importlib.import_module("traceml_ai")
    traceml.init(mode="auto")

    def step(inputs: torch.Tensor, targets: torch.Tensor) -> None:
        with traceml.trace_step(job.model):
            job.step(inputs, targets)

    return step
