"""Recording in the Hugging Face Trainer, by its callbacks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from traindx.capture.watch import Watch

if TYPE_CHECKING:
    TrainerCallback = object
else:
    from transformers import TrainerCallback


class TransformersCallback(TrainerCallback):
    """Records `train`, and diagnoses it afterwards: see `watch` and its `diagnose`."""

    def __init__(self, watch: Watch) -> None:
        self.watch = watch

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.watch.start()

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.watch.stop()
