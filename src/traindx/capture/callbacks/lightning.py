"""Recording in Lightning, by its callbacks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from traindx.capture.watch import Watch

if TYPE_CHECKING:
    from lightning.pytorch import Callback
else:
    try:
        from lightning.pytorch import Callback
    except ModuleNotFoundError:
        from pytorch_lightning import Callback


class LightningCallback(Callback):
    """Records `fit`, and diagnoses it afterwards: see `watch` and its `diagnose`."""

    def __init__(self, watch: Watch) -> None:
        super().__init__()
        self.watch = watch

    def on_fit_start(self, trainer: Any, pl_module: Any) -> None:
        self.watch.start()

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        self.watch.__exit__(type(exception), exception, exception.__traceback__)

    def on_fit_end(self, trainer: Any, pl_module: Any) -> None:
        self.watch.stop()
