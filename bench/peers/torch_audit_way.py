"""torch-audit: `autopatch`, which needs no wrappers, at every step."""

from __future__ import annotations

import importlib
import io
from contextlib import ExitStack, redirect_stdout

from bench.overhead_programs.job import Job, Step


def attach(job: Job, stack: ExitStack) -> Step:
    """Patch the model and the optimizer."""
    audit = importlib.import_module("torch_audit")
    stack.enter_context(redirect_stdout(io.StringIO()))
    audit.autopatch(
        job.model, optimizer=job.optimizer, every_n_steps=1, run_static=True, run_init=True
    )
    return job.step
