"""Loss, learning rate and gradient norm at every step, as JSON Lines and CSV.

This is the input that the documentation of trainpulse, training-doctor and trainproof asks for; a
program with several losses gets a file for each.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

folder = Path(os.environ["PEER_ANSWER"]).parent
optimizers: list[Any] = []
models: dict[int, Any] = {}
counts: dict[str, int] = {}


def attach(model: Any, optimizer: Any, is_classifier: bool) -> None:
    """Remember whose numbers to write."""
    optimizers.append(optimizer)
    models[id(optimizer)] = model


def after_step(name: str, loss: float, optimizer: Any) -> None:
    """Write one step, at once: the program may be killed."""
    used = optimizer if id(optimizer) in models else optimizers[0]
    gradients = [p.grad for p in models[id(used)].parameters() if p.grad is not None]
    norm = sum(float(g.norm()) ** 2 for g in gradients) ** 0.5
    rate = float(used.param_groups[0]["lr"])
    step = counts[name] = counts.get(name, -1) + 1
    safe = "".join(c if c.isalnum() else "_" for c in name)
    row = {"step": step, "loss": loss, "grad_norm": norm, "learning_rate": rate}
    with (folder / f"{safe}.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")
    with (folder / f"{safe}.csv").open("a", encoding="utf-8") as file:
        head = "" if step else "step,loss,grad_norm,lr\n"
        file.write(f"{head}{step},{loss},{norm},{rate}\n")
