"""Recording in Lightning: `Trainer(callbacks=[TraindxCallback()])`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from traindx.watching import watch

if TYPE_CHECKING:
    from lightning.pytorch import Callback
else:
    try:
        from lightning.pytorch import Callback
    except ModuleNotFoundError:
        from pytorch_lightning import Callback


class TraindxCallback(Callback):
    """Records `fit`, and diagnoses it afterwards: see `watch` and its `diagnose`."""

    def __init__(
        self, output: str | os.PathLike[str] | None = None, *, overhead: float = 0.02
    ) -> None:
        super().__init__()
        self.watch = watch(output=output, overhead=overhead)

    def on_fit_start(self, trainer: Any, pl_module: Any) -> None:
        self.watch.start()

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        self.watch.__exit__(type(exception), exception, exception.__traceback__)

    def on_fit_end(self, trainer: Any, pl_module: Any) -> None:
        self.watch.stop()
