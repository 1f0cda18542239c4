"""Parameters that a loss depends on, and the optimizers that hold them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from . import moments, nested
from .change_report import ChangeReport

MAX_NODES = 200_000
LOOKS = 16  # backward passes that are looked at: parts may join later


def nodes(losses: Any) -> Iterator[Any]:
    """Yield the nodes of the graphs of losses."""
    waiting = [t.grad_fn for t in nested.tensors(losses) if t.grad_fn is not None]
    seen = set(waiting)
    while waiting and len(seen) < MAX_NODES:
        node = waiting.pop()
        yield node
        for following, _ in node.next_functions:
            if following is not None and following not in seen:
                seen.add(following)
                waiting.append(following)


def reached(losses: Any) -> list[torch.nn.Parameter]:
    """Return the parameters that losses depend on."""
    leaves = [getattr(node, "variable", None) for node in nodes(losses)]
    return [leaf for leaf in leaves if isinstance(leaf, torch.nn.Parameter)]


def hold_all(report: ChangeReport) -> None:
    """Let the optimizer that holds most of a loss's parameters hold all of them."""
    looks = [0]

    def look(losses: Any) -> None:
        looks[0] += 1
        optimizers = moments.live_optimizers()
        if looks[0] > LOOKS or not optimizers:
            return
        wanted = reached(losses)
        holders = {id(p): o for o in optimizers for p in moments.parameters_of(o)}
        missing = [p for p in wanted if id(p) not in holders]
        if not missing:
            return
        shares = [sum(holders.get(id(p)) is o for p in wanted) for o in optimizers]
        _add(optimizers[shares.index(max(shares))], missing)
        report.count(len(missing))

    moments.on("backward_begins", report, look)


def _add(optimizer: torch.optim.Optimizer, parameters: list[torch.nn.Parameter]) -> None:
    """Put parameters into the first group; a scheduler knows the number of groups."""
    group = optimizer.param_groups[0]
    group["params"] = [*group["params"], *parameters]
    if "param_names" in group:
        start = len(group["param_names"])
        names = [f"added.{start + n}" for n in range(len(parameters))]
        group["param_names"] = [*group["param_names"], *names]
