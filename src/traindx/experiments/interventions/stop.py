"""Ends the process after a number of optimizer steps, as if the training were over.

A program that never takes one is ended after as many backward passes.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
from datetime import timedelta
from time import sleep
from typing import Any

import torch

from . import moments
from .change_report import ChangeReport

ACCUMULATED = 64  # backward passes that a step may be made of
WAITED_S = 10.0  # for the other ranks to come as far
LAST_S = 0.5  # that the rank which hosts the store stays longer


def apply(values: dict[str, Any], report: ChangeReport) -> None:
    """End after `steps` steps, with exit code 0."""
    limit = int(values["steps"])

    def stop(optimizer: torch.optim.Optimizer) -> None:
        if moments.steps >= limit:
            report.count()
            _leave()

    def stop_unstepped(tensors: Any) -> None:
        backwards[0] += 1
        if not moments.steps and backwards[0] >= max(limit, ACCUMULATED):
            report.note(f"no step was ever taken; ended after {backwards[0]} backward passes")
            report.count()
            _leave()

    backwards = [0]
    moments.on("step_ends", report, stop)
    moments.on("backward_ends", report, stop_unstepped)


def _leave() -> None:
    try:
        _wait_for_others()
        moments.end()
        for child in multiprocessing.active_children():
            if child.daemon:
                child.terminate()  # workers of a loader, as at a usual end
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(0)


def _wait_for_others() -> None:
    """Let ranks leave together: one that is gone would be an error to those that still send."""
    distributed = torch.distributed
    if not (distributed.is_available() and distributed.is_initialized()):
        return
    size, rank = distributed.get_world_size(), distributed.get_rank()
    if size < 2:
        return
    store = distributed.distributed_c10d._get_default_store()
    store.set(f"traindx-stop-{rank}", "here")
    try:
        store.wait([f"traindx-stop-{r}" for r in range(size)], timedelta(seconds=WAITED_S))
    except Exception:  # one that never comes: each ends for itself
        return
    if rank == 0:
        sleep(LAST_S)
