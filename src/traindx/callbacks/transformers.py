"""Recording in the Hugging Face Trainer: `Trainer(..., callbacks=[TraindxCallback()])`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from traindx.watching import watch

if TYPE_CHECKING:
    TrainerCallback = object
else:
    from transformers import TrainerCallback


class TraindxCallback(TrainerCallback):
    """Records `train`, and diagnoses it afterwards: see `watch` and its `diagnose`."""

    def __init__(
        self, output: str | os.PathLike[str] | None = None, *, overhead: float = 0.02
    ) -> None:
        self.watch = watch(output=output, overhead=overhead)

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.watch.start()

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.watch.stop()
