"""What is known of the models and optimizers of a process, and who owns which parameter."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Iterator
from math import isfinite
from typing import Any

import torch
from torch import nn
from torch.nn.parameter import is_lazy

from . import discovery, graph, places, samples
from .summaries import local_part, spaced

WATCHED = 8  # parameters by which it is known whether anything ever moved
MAX_STRANGERS = 100
MAX_OWNERS = 32
_SMALL = 16384  # values: their gradients are summed up at every step

Named = "list[tuple[str, nn.Parameter]]"


class Owner:
    """An optimizer and the state of its current step."""

    def __init__(self, number: int, optimizer: torch.optim.Optimizer) -> None:
        self.number = number
        self.optimizer = weakref.ref(optimizer)
        self.steps = 0
        self.is_clear: bool | None = None  # gradients were seen to be gone since the last step
        self.had_gradients: bool | None = None  # after the last backward pass
        self.look: samples.ParameterSnapshot | None = None
        self.seen: dict[str, Any] = {}
        held = _held(optimizer)
        small = [p for p in held if p.numel() <= _SMALL and p.requires_grad]
        small = small or sorted(held, key=lambda p: p.numel())[:1]
        self.guard: Callable[[], nn.Parameter | None] = _nobody  # whose gradient can be summed up
        self._sentinels = [weakref.ref(p) for p in dict.fromkeys([*small[:1], *small[-1:]])]

    def watched(self) -> list[nn.Parameter]:
        """Return the first and the last small parameter: what is wrong with all shows in them."""
        return [p for p in (ref() for ref in self._sentinels) if p is not None]

    def is_gradient_sound(self) -> bool:
        """Tell whether the watched gradients are finite, where that can be told without waiting."""
        for reference in self._sentinels:
            parameter = reference()
            gradient: Any = None if parameter is None else parameter.grad
            if type(gradient) is not torch.Tensor or not gradient.is_cpu:
                continue  # on a device, or spread over ranks
            if gradient.layout is not torch.strided or not gradient.is_floating_point():
                continue
            if gradient.requires_grad:
                gradient = gradient.detach()
            self.guard = reference
            return isfinite(gradient.sum().item())  # the first: what is behind it ends up in it
        self.guard = _nobody
        return True

    def is_gradient_still_sound(self) -> bool:
        """Tell the same at a step that passes; where it may not be so, the answer is no."""
        gradient = getattr(self.guard(), "grad", None)
        if gradient is None:
            return self.guard is _nobody
        return isfinite(gradient.sum().item())


class Trained:
    """A model that is trained, and its parts that depend on the mode."""

    def __init__(self, number: int, module: nn.Module) -> None:
        self.number = number
        self.module = weakref.ref(module)
        self._parts = [(name, weakref.ref(part)) for name, part in discovery.sensitive(module)]

    def parts(self) -> list[tuple[str, nn.Module]]:
        """Return the parts that are still there."""
        found = ((name, reference()) for name, reference in self._parts)
        return [(name, part) for name, part in found if part is not None]


class Knowledge:
    """The models and optimizers that were found."""

    def __init__(self) -> None:
        self.owners: dict[int, Owner] = {}
        self.models: list[Trained] = []
        self.names: dict[int, str] = {}
        self._watched: list[tuple[weakref.ref[nn.Parameter], torch.Tensor]] = []

    @property
    def is_full(self) -> bool:
        """Tell whether no more optimizers are followed: a new one at every step, say."""
        return len(self.owners) >= MAX_OWNERS

    def owner_of(self, optimizer: torch.optim.Optimizer) -> Owner | None:
        """Return what is known of an optimizer."""
        owner = self.owners.get(id(optimizer))
        return owner if owner is not None and owner.optimizer() is optimizer else None

    def discover(
        self, loss: torch.Tensor | None, given: list[Any]
    ) -> Iterator[tuple[str, dict[str, Any], nn.Module | None]]:
        """Find models and optimizers; yield a record of each, and the module if it is new."""
        nodes = graph.walk(loss) if loss is not None else []
        reached = {id(v) for n in nodes if (v := n.variable) is not None}
        found = discovery.discover(sys._getframe(1), reached, given)
        numbers: dict[int, int] = {}
        for optimizer in found.optimizers.values():
            owner = self.owner_of(optimizer)
            if owner is None and self.is_full:
                return
            if owner is None:
                owner = self.owners[id(optimizer)] = Owner(len(self.owners), optimizer)
            for p in _held(optimizer):
                numbers.setdefault(id(p), owner.number)
        everything: set[int] = set()
        for module in found.roots():
            own = {id(p) for p in module.parameters()}
            everything |= own
            if own & (numbers.keys() | reached):
                kind, record, new = self._know(module, numbers)
                yield kind, {**record, "is_hidden": id(module) not in found.named}, new
        for key, optimizer in found.optimizers.items():
            rest = (o for o in found.optimizers.values() if o is not optimizer)
            others = {id(p) for o in rest for p in _held(o)}
            record = discovery.describe_optimizer(optimizer, everything, others)
            where = {"id": self.owners[key].number, "place": places.user_place()}
            yield "optimizer", {**where, **record}, None

    def _know(
        self, module: nn.Module, owners: dict[int, int]
    ) -> tuple[str, dict[str, Any], nn.Module | None]:
        record, named = discovery.describe_model(module, owners)
        known = next((m for m in self.models if m.module() is module), None)
        if known is not None:
            return "model", {"id": known.number, **record}, None
        known = Trained(len(self.models), module)
        self.models.append(known)
        self.names.update({id(p): name for name, p in named})
        for _, p in named:
            if len(self._watched) < WATCHED and p.requires_grad and _is_plain(p):
                self._watched.append((weakref.ref(p), spaced(p, samples.COMPARED).clone()))
        return "model", {"id": known.number, **record}, module

    def is_unknown(self, nodes: list[graph.Node]) -> bool:
        """Tell whether a loss depends on parameters of a model that was not met before."""
        found = (n.variable for n in nodes)
        return any(isinstance(v, nn.Parameter) and id(v) not in self.names for v in found)

    def parameters_of(self, optimizer: torch.optim.Optimizer) -> list[tuple[str, nn.Parameter]]:
        """Return what an optimizer owns, and what nobody owns of the same models."""
        held = {id(p): p for p in _held(optimizer)}
        others = (o for owner in self.owners.values() if (o := owner.optimizer()) is not None)
        owned = {id(p) for other in others for p in _held(other)}
        named: list[tuple[str, nn.Parameter]] = []
        for model in self.models:
            module = model.module()
            mine = discovery.parameters(module) if module is not None else []
            is_nobodys = not any(id(p) in owned for _, p in mine)
            if is_nobodys or any(id(p) in held for _, p in mine):
                named += [(n, p) for n, p in mine if id(p) in held or id(p) not in owned]
        known = {id(p) for _, p in named}
        strangers = [p for i, p in held.items() if i not in known][:MAX_STRANGERS]
        return named + [(f"stranger {i}", p) for i, p in enumerate(strangers)]

    def modes_of(self, owner: Owner) -> dict[str, Any]:
        """Return the mode of the model that an optimizer trains."""
        optimizer = owner.optimizer()
        held = {id(p) for p in _held(optimizer)} if optimizer is not None else set()
        for model in self.models:
            module = model.module()
            if module is not None and any(id(p) in held for p in module.parameters()):
                return samples.modes(module, model.parts())
        return {}

    def parts_of(self, module: nn.Module) -> tuple[int, list[tuple[str, nn.Module]]]:
        """Return a model's number, and its parts that depend on the mode."""
        for model in self.models:
            if model.module() is module:
                return model.number, model.parts()
        return 0, discovery.sensitive(module)

    def has_moved(self) -> bool | None:
        """Tell whether any of the watched weights ever changed."""
        compared = [
            bool((spaced(p, samples.COMPARED) != before).any())
            for ref, before in self._watched
            if (p := ref()) is not None and _is_plain(p)
        ]
        return any(compared) if compared else None

    def fingerprint(self) -> float | None:
        """Return a number that is the same on every rank as long as the weights are."""
        held = [p for ref, _ in self._watched if (p := ref()) is not None]
        if not held or not all(_is_plain(p) for p in held):
            return None  # FSDP gives the memory of whole weights back
        sums = [float(spaced(p, samples.COMPARED).double().sum()) for p in held]
        return sum((i + 1) * total for i, total in enumerate(sums))


def _nobody() -> None:
    return None


def _held(optimizer: torch.optim.Optimizer) -> list[nn.Parameter]:
    held = (p for group in optimizer.param_groups for p in group["params"])
    return [p for p in held if not is_lazy(p)]


def _is_plain(tensor: torch.Tensor) -> bool:
    return tensor.is_floating_point() and local_part(tensor) is tensor
