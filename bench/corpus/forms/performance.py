"""Other forms of time that is spent elsewhere than in training."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from bench.corpus.anatomy import loop_steps, optimizers, training_loaders, updates
from bench.corpus.operators import Change, form, many
from bench.corpus.operators import performance as first
from bench.corpus.sites import expressions
from bench.corpus.source import Source
from bench.corpus.syntax import keyword
from bench.corpus.writing import Side, Site, forms, inline, lines


def _collated(source: Source, body: tuple[str, ...], name: str) -> Iterator[Change]:
    """Give the training loader a way to put a batch together."""
    for call in training_loaders(source):
        if keyword(call, "collate_fn") is None and "import torch\n" in source.text and call.args:
            top = source.at_top("import time", "", *body)
            final = [*call.args, *(k.value for k in call.keywords)][-1]
            yield many(source.wrap(final, "", f", collate_fn={name}"), top)


@form(first.slow_collation)
def each_example_waits(source: Source, strength: float) -> Iterator[Change]:
    body = (
        "def read_examples(examples):",
        "    for _ in examples:",
        f"        time.sleep({strength:g} / len(examples))",
        "    return torch.utils.data.default_collate(examples)",
    )
    yield from _collated(source, body, "read_examples")


@form(first.slow_collation)
def busy_while_reading(source: Source, strength: float) -> Iterator[Change]:
    body = (
        "def decode(examples):",
        f"    end = time.perf_counter() + {strength:g}",
        "    while time.perf_counter() < end:",
        "        sum(range(1000))",
        "    return torch.utils.data.default_collate(examples)",
    )
    yield from _collated(source, body, "decode")


WRAPPED = (
    "class SlowDisk(torch.utils.data.Dataset):",
    "    def __init__(self, examples):",
    "        self.examples = examples",
    "",
    "    def __len__(self):",
    "        return len(self.examples)",
    "",
    "    def __getitem__(self, index):",
    "        time.sleep(<s> / 20)",
    "        return self.examples[index]",
)


def _sets(source: Source) -> Iterator[ast.expr]:
    for call in training_loaders(source):
        if call.args and keyword(call, "sampler", "batch_sampler") is None:
            yield call.args[0]


forms(
    first.slow_collation,
    expressions(_sets),
    new={"data-set-that-waits": inline("SlowDisk(<x>)", *WRAPPED)},
)


def _saving(source: Source) -> Iterator[Site]:
    for step in loop_steps(source):
        for optimizer in optimizers(source):
            near = [s for s, o in updates(source) if s in step.block and o == optimizer.name]
            if not near or not optimizer.model or "." in optimizer.model:
                continue
            if isinstance(source.around(near[-1], ast.For), ast.For):
                words = {"model": optimizer.model, "optimizer": optimizer.name}
                yield Site(anchor=near[-1], side=Side.AFTER, words=words)


STATE = '{"model": <model>.state_dict(), "optimizer": <optimizer>.state_dict()}'
forms(
    first.saved_at_every_step,
    _saving,
    known={
        "several-names": lines(
            'for name in ("last", "best", "spare", "backup"):',
            f'    torch.save({STATE}, f"{{name}}.pt")',
        ),
        "in-a-function": lines(
            "keep(<model>, <optimizer>)",
            top=(
                "def keep(module, optimizer):",
                "    for copy in range(4):",
                "        parts = [module.state_dict(), optimizer.state_dict()]",
                '        torch.save(parts, f"step-{copy}.pt")',
            ),
        ),
    },
    new={
        "written-again-and-again": lines(
            "saved = 0",
            "while saved < 4:",
            f'    torch.save({STATE}, "checkpoint-last.pt")',
            "    saved += 1",
        ),
        "one-file-each": lines(
            "for part in (<model>, <optimizer>) * 3:",
            '    torch.save(part.state_dict(), f"{type(part).__name__}.pt")',
        ),
    },
)
