"""Recording in the Hugging Face Trainer: `Trainer(..., callbacks=[TraindxCallback()])`."""

from __future__ import annotations

import os

from traindx import api
from traindx.capture.callbacks.transformers import TransformersCallback


class TraindxCallback(TransformersCallback):
    """Records `train`, and diagnoses it afterwards: see `watch` and its `diagnose`."""

    def __init__(
        self, output: str | os.PathLike[str] | None = None, *, overhead: float = 0.02
    ) -> None:
        super().__init__(api.watch(output=output, overhead=overhead))
