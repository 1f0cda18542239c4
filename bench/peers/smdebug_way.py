"""smdebug: weights, gradients and losses at every step, to a folder."""

from __future__ import annotations

import importlib
import os
from contextlib import ExitStack

from bench.overhead_programs.job import Job, Step


def attach(job: Job, stack: ExitStack) -> Step:
    """Register the model and the loss with a hook."""
    smd = importlib.import_module("smdebug.pytorch")
    hook = smd.Hook(
        out_dir=os.path.join(os.environ["OVERHEAD_FOLDER"], "smdebug"),  # noqa: PTH118
        include_collections=["weights", "gradients", "losses"],
        save_config=smd.SaveConfig(save_interval=1),
    )
    hook.register_module(job.model)
    hook.register_loss(job.criterion)
    stack.callback(hook.close)
    return job.step
