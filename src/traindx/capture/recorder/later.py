"""Numbers that are still on their way from the device."""

from __future__ import annotations

import torch

from .summaries import local_part


class Later:
    """A number that is read when it has arrived: training never waits for it."""

    __slots__ = ("_event", "_held", "value")

    @property
    def is_known(self) -> bool:
        """Tell whether the number was there at once, or will never be."""
        return self._held is None

    def __init__(self, tensor: torch.Tensor) -> None:
        self.value: float | None = None
        self._held: torch.Tensor | None = None
        self._event = None
        if type(tensor) is torch.Tensor and tensor.is_cpu and tensor.layout is torch.strided:
            self.value = _read(tensor)  # by far the most frequent, at every step
            return
        local = local_part(tensor)
        if local is None or local.numel() != 1 or local.is_complex():
            return
        local = local.detach()
        if local.device.type == "cpu":
            self.value = float(local)
        elif local.device.type == "cuda":
            self._held = torch.empty((), dtype=torch.float64, pin_memory=True, device="cpu")
            self._held.copy_(local.double().reshape(()), non_blocking=True)
            self._event = torch.cuda.Event()
            self._event.record()
        else:
            self._held = local

    def is_here(self) -> bool:
        """Tell whether the number can be read without waiting."""
        if self._held is None:
            return True
        if self._event is not None and not self._event.query():
            return False
        self.value = float(self._held)  # elsewhere than on CUDA this may wait, a step later
        self._held = None
        return True


def _read(tensor: torch.Tensor) -> float | None:
    if tensor.numel() != 1:
        return None
    try:
        value = tensor.item()
    except RuntimeError:  # inside vmap or grad of torch.func
        return None
    return None if isinstance(value, complex) else float(value)
