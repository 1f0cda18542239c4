"""What the machine does to a run."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from bench.corpus.anatomy import loop_steps, optimizers
from bench.corpus.operators import Change, crash, many, one
from bench.corpus.source import Source
from bench.corpus.syntax import named


@crash("killed-by-host")
def killed_under_way(source: Source, strength: float) -> Iterator[Change]:
    """As the kernel does it when memory runs out: no message, no chance to clean up."""
    for step in loop_steps(source):
        loop = source.around(step.backward, ast.For)
        while loop is not None and isinstance(parent := source.around(loop, ast.For), ast.For):
            loop = parent
        if isinstance(loop, ast.For):
            kill = source.after(
                step.backward,
                "steps_done += 1",
                "if steps_done == 90:",
                "    __import__('os').kill(__import__('os').getpid(), 9)",
            )
            yield many(kill, source.before(loop, "steps_done = 0"))


@crash("disk-full")
def checkpoint_to_full_disk(source: Source, strength: float) -> Iterator[Change]:
    for call in named(source, "save"):
        if len(call.args) == 2 and isinstance(call.args[1], ast.Constant):
            yield one(source.replace(call.args[1], 'open("/dev/full", "wb")'))


@crash("disk-full")
def log_to_full_disk(source: Source, strength: float) -> Iterator[Change]:
    for step in loop_steps(source):
        loop = source.around(step.backward, ast.For)
        while loop is not None and isinstance(parent := source.around(loop, ast.For), ast.For):
            loop = parent
        if isinstance(loop, ast.For) and optimizers(source) and "." not in step.loss:
            opened = source.before(loop, 'loss_file = open("/dev/full", "w", buffering=1)')
            wrote = source.after(step.backward, f'loss_file.write(f"{{{step.loss}.item()}}\\n")')
            yield many(wrote, opened)
