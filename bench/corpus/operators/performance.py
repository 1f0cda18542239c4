"""Time that is spent elsewhere than in training."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from bench.corpus.anatomy import loop_steps, optimizers, training_loaders, updates
from bench.corpus.operators import Change, Judged, many, operator
from bench.corpus.source import Source
from bench.corpus.syntax import keyword


@operator("data-loading-bound", judged=Judged.ALWAYS, strengths=(0.03,))
def slow_collation(source: Source, strength: float) -> Iterator[Change]:
    """Each batch waits for a slow read; a step takes a tenth of that."""
    slow = (
        "def read_batch(examples):",
        f"    time.sleep({strength:g})",
        "    return torch.utils.data.default_collate(examples)",
        "",
    )
    for call in training_loaders(source):
        if keyword(call, "collate_fn") is None and "import torch\n" in source.text and call.args:
            top = source.at_top("import time", "", "", *slow)
            final = [*call.args, *(k.value for k in call.keywords)][-1]
            use = source.wrap(final, "", ", collate_fn=read_batch")
            yield Change((top, use), use)


@operator("checkpoint-overhead", judged=Judged.ALWAYS)
def saved_at_every_step(source: Source, strength: float) -> Iterator[Change]:
    """Writes everything to disk several times for every step."""
    for step in loop_steps(source):
        for optimizer in optimizers(source):
            near = [s for s, o in updates(source) if s in step.block and o == optimizer.name]
            if not near or not optimizer.model or "." in optimizer.model:
                continue
            parts = (optimizer.model, optimizer.name)
            state = ", ".join(f'"{p}": {p}.state_dict()' for p in parts)
            save = source.after(
                near[-1],
                "for copy in range(4):",
                f'    torch.save({{{state}}}, f"step-{{copy}}.pt")',
            )
            if isinstance(source.around(near[-1], ast.For), ast.For):
                yield many(save)
