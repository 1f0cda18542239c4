"""Train for some steps in one of several ways, and print the time per step as one line of JSON.

python -m bench.overhead_programs.training mlp --steps 3000 [--way watch] [--compile inductor]
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import tempfile
from contextlib import ExitStack

import torch

from bench.overhead_programs.job import Job, Step
from bench.overhead_programs.timing import Stopwatch

WARM_UP = 0.2  # of the steps


def attach(way: str, job: Job, stack: ExitStack) -> Step:
    """Put a recorder in place; return what trains on one batch."""
    if way == "plain":
        return job.step
    if way == "anomaly":
        torch.autograd.set_detect_anomaly(True)
        return job.step
    if way == "naive":
        from bench.overhead_programs import naive

        naive.attach(job.model)
        return job.step
    if way == "watch":
        import traindx

        folder = stack.enter_context(tempfile.TemporaryDirectory())
        stack.enter_context(traindx.watch(job.model, job.optimizer, output=f"{folder}/run"))
        return job.step
    step: Step = importlib.import_module(f"bench.peers.{way}").attach(job, stack)
    return step


def parser() -> argparse.ArgumentParser:
    """Return what reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program", choices=["mlp", "cnn", "gpt"])
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--limit", type=float, default=60.0, metavar="SECONDS")
    parser.add_argument("--way", default="plain")
    parser.add_argument("--compile", default="", metavar="BACKEND")
    return parser


def read(arguments: list[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    return parser().parse_args(arguments)


def build(options: argparse.Namespace) -> Job:
    """Make the model, the data and the optimizer."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    job: Job = importlib.import_module(f"bench.overhead_programs.{options.program}").make()
    if options.compile:
        job.model = torch.compile(job.model, backend=options.compile)
    return job


def train(job: Job, step: Step, options: argparse.Namespace) -> None:
    """Warm up, then train against the clock, and print."""
    batches = job.batches()
    warm_up = int(WARM_UP * options.steps)
    stretches = ((warm_up, WARM_UP * options.limit), (options.steps - warm_up, options.limit))
    for count, limit_s in stretches:
        stopwatch = Stopwatch()
        while stopwatch.count < count and stopwatch.elapsed_s < limit_s:
            inputs, targets = next(batches)
            step(inputs, targets)
            stopwatch.lap()
    print(json.dumps(stopwatch.result()), file=sys.__stdout__, flush=True)


def main() -> None:
    """Train in the way that was asked for."""
    options = read()
    job = build(options)
    with ExitStack() as stack:
        train(job, attach(options.way, job, stack), options)


if __name__ == "__main__":
    main()
