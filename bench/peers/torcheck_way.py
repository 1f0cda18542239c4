"""torcheck: every check that its documentation lists and a healthy classifier passes."""

from __future__ import annotations

import importlib
from contextlib import ExitStack

from bench.overhead_programs.job import Job, Step


def attach(job: Job, stack: ExitStack) -> Step:
    """Register the optimizer, and check that weights change and nothing is NaN or infinite."""
    torcheck = importlib.import_module("torcheck")
    torcheck.register(job.optimizer)
    torcheck.add_module_changing_check(job.model, module_name="model")
    torcheck.add_module_nan_check(job.model)
    torcheck.add_module_inf_check(job.model)
    return job.step
