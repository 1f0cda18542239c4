"""Cockpit: the economy configuration at every step, as in its basic example."""

from __future__ import annotations

import importlib
from contextlib import ExitStack
from itertools import count

import torch
from torch import nn

from bench.overhead_programs.job import Job, Step


def attach(job: Job, stack: ExitStack) -> Step:
    """Extend the model and the loss, and put the backward pass into the cockpit."""
    extend = importlib.import_module("backpack").extend
    cockpit_module = importlib.import_module("cockpit")
    configuration = importlib.import_module("cockpit.utils.configuration").configuration
    extend(job.model)
    criterion = extend(job.criterion)
    individual = nn.CrossEntropyLoss(reduction="none")
    cockpit = cockpit_module.Cockpit(job.model.parameters(), quantities=configuration("economy"))
    numbers = count()

    def step(inputs: torch.Tensor, targets: torch.Tensor) -> None:
        job.optimizer.zero_grad()
        outputs = job.model(inputs)
        loss = criterion(outputs, targets)
        losses = individual(outputs, targets)
        number = next(numbers)
        with cockpit(
            number,
            info={
                "batch_size": inputs.shape[0],
                "individual_losses": losses,
                "loss": loss,
                "optimizer": job.optimizer,
            },
        ):
            loss.backward(create_graph=cockpit.create_graph(number))
        job.optimizer.step()

    return step
