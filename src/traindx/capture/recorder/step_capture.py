"""One step seen whole: every operation that torch dispatches, in the order of execution.

The mode stands on the stack of the training thread only while a step is captured. It calls each
operation as it was called and changes nothing; what it cannot describe it leaves out.
"""

from __future__ import annotations

import os
import sys
import weakref
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import islice
from math import prod
from time import perf_counter, thread_time
from types import FrameType
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.weak import WeakTensorKeyDictionary

from . import discovery, loader_passes, places
from .replay_mode import op_name, storage_of
from .summaries import shape_of
from .tensor_facts import equal_rows, facts, gradient_facts, outline
from .token_order import TokenOrder

MAX_OPERATIONS = 2500  # of one step; a megabyte as text
MAX_FACTS_S = 0.6  # of looking at values; afterwards shapes are noted alone
MAX_SCALARS = 8  # arguments of one operation that are no tensors
MAX_NESTED = 64  # tensors in one argument
MAX_UPDATES = 200  # operations of optimizers
MAX_BACKWARD = 1500  # operations of backward whose results are looked at
_OPTIMIZERS = f"torch{os.sep}optim{os.sep}"
_CALL = "_call_impl"
_OURS = os.path.dirname(os.path.abspath(__file__)) + os.sep
# call what the program called
_BETWEEN = frozenset(_OURS + name for name in ("hooks.py", "loss_slice.py", "step_replay.py"))
# of these the result with the shape of an input is the gradient of this input
_MATRIX = frozenset({"addmm", "mm", "bmm", "convolution", "embedding"})
_SHAPELESS = ("device", "low", "high", "mean", "zeros", "nonfinite", "is_whole", "distinct")
_ROOM = frozenset({"empty", "empty_like", "new_empty", "empty_strided", "new_empty_strided"})
VIEWS = frozenset({"t", "view", "detach", "transpose", "permute", "expand", "unsqueeze", "squeeze"})
# what hands the same tensor on inside of torch
_IDLE = frozenset(
    {"resize", "set", "record_function_enter_new", "record_function_enter",
     "record_function_exit", "lift_fresh"}
)  # fmt: skip


class StepCapture(TorchDispatchMode):  # type: ignore[misc]
    """Notes operations and tensors until it is closed."""

    def __init__(
        self, kind: str, step: int, names: dict[int, str], modules: dict[int, str]
    ) -> None:
        super().__init__()
        self.kind, self.step = kind, step
        self.is_open = True
        self.why = ""  # something was left out
        self.cost_s = 0.0
        self._parameters = names  # by the identity of the parameter or buffer
        self._modules = modules  # by the identity of the module
        self._ids: Any = WeakTensorKeyDictionary()
        self._alive: list[Any] = []  # references to what may still tell that it needs a gradient
        self._memory: dict[int, tuple[int, Any]] = {}  # by address, as long as somebody holds it
        self._memories = 0
        self._tensors: list[dict[str, Any]] = []
        self._operations: list[dict[str, Any]] = []
        self._module_names: dict[str, int] = {}
        self._places: dict[tuple[str, int], int] = {}
        self._told_places: list[dict[str, Any]] = []
        self._losses: list[int] = []
        self._outputs: list[int] = []
        self._updates: list[dict[str, Any]] = []
        self._gradients: dict[tuple[int, int], tuple[float, float]] = {}
        self._makers: dict[int, int] = {}  # the operation by the number of its autograd node
        self._tokens = TokenOrder()
        self._facts_s = 0.0
        self._backward = 0
        self._is_update = False  # of the operation that is looked at
        self._called: tuple[Any, str] | None = None  # the module that runs it
        self.is_replayed = False

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # or else the compiler is imported, which takes seconds

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = kwargs or {}
        if not self.is_open:
            return func(*args, **given)
        began = perf_counter()
        seen = self._safely(self._before, func, args, given, sys._getframe(1))
        self.cost_s += perf_counter() - began
        result = func(*args, **given)
        if seen is not None:
            began = perf_counter()
            self._safely(self._after, seen, result)
            self.cost_s += perf_counter() - began
        return result

    def _safely(self, method: Any, *given: Any) -> Any:
        try:
            return method(*given)
        except Exception as error:  # the boundary to the training: nothing may pass
            self.is_open = False
            self.why = f"it ended early: {type(error).__name__}: {error}"[:300]
            return None

    # --- one operation --------------------------------------------------------------------------

    def _before(self, func: Any, args: Any, kwargs: Any, frame: FrameType) -> Any:
        name = op_name(func)
        if name in _IDLE:
            return None
        if name in _ROOM:
            return None, set()
        node = torch._C._current_autograd_node()
        if node is not None:
            self._backward += 1
            return self._gradient_of(node, name)
        if len(self._operations) >= MAX_OPERATIONS:
            self.is_open = False
            self.why = f"only the first {MAX_OPERATIONS} operations were kept"
            return None
        module, place, is_apart = self._where(frame)
        if is_apart:
            if self._is_update:
                self._note_update(name, func, args, kwargs)
            return None
        inputs = [self.number_of(t) for t in _tensors((*args, *kwargs.values()))]
        record: dict[str, Any] = {"name": name, "inputs": inputs}
        scalars = dict(_scalars(func, args, kwargs))
        record.update({"module": module} if module is not None else {})
        record.update({"place": place} if place is not None else {})
        record.update({"settings": scalars} if scalars else {})
        ahead = self._tokens.take(name, args)
        record.update({"ahead": ahead} if ahead is not None else {})
        if not torch.is_grad_enabled():
            record["is_without_grad"] = True
        if places.is_user_file(frame.f_code.co_filename):
            record["is_direct"] = True
        # the node that autograd made for it, before it was dispatched
        self._makers.setdefault(torch.autograd._get_sequence_nr() - 1, len(self._operations))
        return record, set(_written(func, args, kwargs))

    def _gradient_of(self, node: Any, name: str) -> tuple[dict[str, Any], None] | None:
        """Return the operation whose gradient is computed, if its result tells one input's."""
        number = self._makers.get(node._sequence_nr())
        if number is None or self._backward > MAX_BACKWARD or name in VIEWS:
            return None
        return self._operations[number], None

    def _note_gradient(self, record: dict[str, Any], result: Any) -> None:
        """Note what backward gives the one input that an operation can be said to learn from."""
        found = next(_tensors((result,)), None)
        given = dict.fromkeys(record["inputs"])
        learnt = [n for n in given if self._tensors[n].get("needs_grad")]
        if found is None or (len(learnt) > 1 and record["name"] not in _MATRIX):
            return
        shape = shape_of(found)
        alike = [n for n in learnt if self._tensors[n]["shape"] == shape]
        said = gradient_facts(found) if len(alike) == 1 else None
        if said is not None:  # the last result of a node is the gradient
            self._gradients[alike[0], id(record)] = said

    def _note_update(self, name: str, func: Any, args: Any, kwargs: Any) -> None:
        """Note what an optimizer does, without a look at the values."""
        if len(self._updates) >= MAX_UPDATES:
            return
        written = set(_written(func, args, kwargs))
        if written:
            given = list(_tensors((*args, *kwargs.values())))
            numbers = {id(t): self.number_of(t, is_looked_at=False) for t in given}
            changed = [n for i, n in numbers.items() if i in written]
            inputs = [numbers[id(t)] for t in given]
            self._updates.append({"name": name, "inputs": inputs, "outputs": changed})

    def _after(self, seen: Any, result: Any) -> None:
        record, written = seen
        if written is None:
            self._note_gradient(record, result)
            return
        if record is None:
            for tensor in _tensors((result,)):
                self._keep(tensor, {**outline(tensor), "role": "empty"})
            return
        outputs = []
        for tensor in _tensors((result,)):
            is_changed = id(tensor) in written
            is_new = is_changed or tensor not in self._ids
            source = None if is_changed else self._seen_through(tensor, record["inputs"])
            outputs.append(self.number_of(tensor, is_new=is_new, source=source))
        record["outputs"] = outputs
        if not outputs and isinstance(result, (bool, int, float)):
            record["value"] = float(result)
        self._operations.append(record)

    def _seen_through(self, tensor: Any, inputs: list[int]) -> int | None:
        """Return the input that a tensor shows whole in another shape: its values are known."""
        if not inputs or tensor.numel() < 2:
            return None
        known, holder = self._memory.get(storage_of(tensor), (-1, None))
        source = self._tensors[inputs[0]]
        is_shared = holder is not None and holder() is not None and source["memory"] == known
        return inputs[0] if is_shared and prod(source["shape"]) == tensor.numel() else None

    def number_of(
        self,
        tensor: Any,
        *,
        is_new: bool = False,
        source: int | None = None,
        is_looked_at: bool = True,
    ) -> int:
        """Return the number of a tensor; one that was changed in place gets another."""
        known = None if is_new else self._ids.get(tensor)
        if known is not None:
            if tensor.requires_grad:
                self._tensors[known]["needs_grad"] = True
            return int(known)
        if source is not None:
            said = self._same_values(tensor, source)
        else:
            said = self._facts(tensor) if is_looked_at else outline(tensor)
        role = self._parameters.get(id(tensor)) or self._role_in_call(tensor)
        if role is not None:
            said["role"] = role
        return self._keep(tensor, said)

    def _keep(self, tensor: Any, said: dict[str, Any]) -> int:
        number = len(self._tensors)
        said["memory"] = self._memory_of(tensor)
        if tensor.requires_grad:
            said["needs_grad"] = True
        self._tensors.append(said)
        self._ids[tensor] = number
        self._alive.append((number, weakref.ref(tensor)))
        return number

    def _same_values(self, tensor: Any, source: int) -> dict[str, Any]:
        known = self._tensors[source]
        said = {key: known[key] for key in _SHAPELESS if key in known}
        return {**outline(tensor), **said}

    def _memory_of(self, tensor: Any) -> int:
        """Return a number that a tensor shares with its views; an address may be used again."""
        address = storage_of(tensor)
        number, holder = self._memory.get(address, (-1, None))
        if holder is None or holder() is None:
            number, self._memories = self._memories, self._memories + 1
        self._memory[address] = number, weakref.ref(tensor)
        return number

    def _facts(self, tensor: Any) -> dict[str, Any]:
        began = thread_time()
        if self._facts_s > MAX_FACTS_S:
            self.why = self.why or "the values of the last tensors were not looked at"
            return outline(tensor)
        said = facts(tensor)
        self._facts_s += thread_time() - began
        return said

    def _where(self, frame: FrameType | None) -> tuple[int | None, int | None, bool]:
        """Return the module, the user's line, and whether it is no part of the computation."""
        module: int | None = None
        place: int | None = None
        self._is_update, self._called = False, None
        is_closure = False  # of a library, that an optimizer calls in its step
        while frame is not None:
            code = frame.f_code
            if place is None:
                if places.is_user_file(code.co_filename):
                    place = self._place(frame)
                elif _is_apart(code.co_filename):
                    is_update = _OPTIMIZERS in code.co_filename
                    if not (is_update and is_closure):
                        self._is_update = is_update
                        return None, None, True
                elif not is_closure and _is_installed(code.co_filename):
                    held = frame.f_locals.get("self")
                    if isinstance(held, torch.optim.Optimizer):
                        self._is_update = True
                        return None, None, True
                    is_closure = True
            if module is None and code.co_name == _CALL:
                called = frame.f_locals.get("self")
                name = self._modules.get(id(called))
                if name is not None:
                    self._called = (called, name)
                    module = self._module_names.setdefault(name, len(self._module_names))
            if module is not None and place is not None:
                break
            frame = frame.f_back
        return module, place, False

    def _role_in_call(self, tensor: Any) -> str | None:
        """Return the role of a parameter that its module holds only while it is called, as FSDP."""
        if self._called is None or not isinstance(tensor, torch.nn.Parameter):
            return None
        module, name = self._called
        held = (n for n, p in module._parameters.items() if p is tensor)
        own = next(held, None)
        if own is None:
            return None
        owner = "" if name == type(module).__name__ else f"{name}."
        return self._parameters.setdefault(id(tensor), f"parameter:{owner}{own}")

    def _place(self, frame: FrameType) -> int:
        key = (frame.f_code.co_filename, frame.f_lineno)
        if key not in self._places:
            self._places[key] = len(self._places)
            self._told_places.append(places.place_of(frame))
        return self._places[key]

    # --- what the session says of it ------------------------------------------------------------

    @property
    def size(self) -> int:
        """Return how many operations were noted."""
        return len(self._operations)

    @property
    def is_untouched(self) -> bool:
        """Tell whether no module was called and no loss computed yet."""
        return not self._module_names and not self._losses

    def is_batch(self, *batches: Any) -> None:
        """Note which tensors the loader gave."""
        self._safely(self._note_batch, batches)

    def _note_batch(self, batches: Any) -> None:
        for batch in batches:
            for name, tensor in islice(loader_passes.tensors(batch), MAX_NESTED):
                said = self._tensors[self.number_of(tensor)]
                said.setdefault("role", f"batch/{name}")
                self._note_rows(said, tensor)

    def is_output(self, result: Any) -> None:
        """Note what a model returned to the program."""
        self._safely(self._note_outputs, result)

    def _note_outputs(self, result: Any) -> None:
        for _, tensor in islice(loader_passes.tensors(result), MAX_NESTED):
            if self.is_open and len(self._outputs) < MAX_NESTED:
                number = self.number_of(tensor)
                self._outputs.append(number)
                self._note_rows(self._tensors[number], tensor)

    def _note_rows(self, said: dict[str, Any], tensor: Any) -> None:
        if found := equal_rows(tensor):
            said["equal_rows"] = found

    def is_loss(self, tensors: Any) -> None:
        """Note what backward is called on."""
        self._safely(self._note_losses, tensors)

    def _note_losses(self, tensors: Any) -> None:
        self._losses += [self.number_of(tensor) for tensor in _tensors((tensors,))]

    def record(self) -> dict[str, Any]:
        """Return what was seen; the mode lets go of everything."""
        self.is_open = False
        for number, reference in self._alive:
            tensor = reference()
            if tensor is not None and tensor.requires_grad:
                self._tensors[number]["needs_grad"] = True
        for (number, _), (size, zeros) in self._gradients.items():
            said = self._tensors[number]
            said["grad_size"] = max(size, said.get("grad_size", 0.0))
            said["grad_zeros"] = min(zeros, said.get("grad_zeros", 1.0))
        told = {
            "kind": self.kind,
            "step": self.step,
            "tensors": self._tensors,
            "operations": self._operations,
            "modules": list(self._module_names),
            "places": self._told_places,
            "losses": list(dict.fromkeys(self._losses)),
            "outputs": list(dict.fromkeys(self._outputs)),
            "updates": self._updates,
            "backward_operations": self._backward,
            "is_replayed": self.is_replayed,
            "cost_s": round(self.cost_s, 4),
            "why": self.why,
        }
        self._alive, self._ids, self._called = [], WeakTensorKeyDictionary(), None
        self._tokens.clear()
        return told


@lru_cache(maxsize=4096)
def _is_apart(file: str) -> bool:
    """Tell whether code of a file is the update of an optimizer, or the recorder itself."""
    return _OPTIMIZERS in file or (file.startswith(_OURS) and file not in _BETWEEN)


@lru_cache(maxsize=4096)
def _is_installed(file: str) -> bool:
    """Tell whether a file is of a library other than torch."""
    return "-packages" in file and f"-packages{os.sep}torch{os.sep}" not in file


def names_of(models: Iterable[Any]) -> tuple[dict[int, str], dict[int, str]]:
    """Return the names of parameters and buffers, and of modules, by identity."""
    tensors: dict[int, str] = {}
    modules: dict[int, str] = {}
    for number, model in enumerate(models):
        prefix = f"{number}:" if number else ""
        for name, module in model.named_modules():
            known = discovery.plain(f"{name}.").removesuffix(".")
            modules.setdefault(id(module), f"{prefix}{known or type(module).__name__}")
        for name, parameter in model.named_parameters():
            tensors.setdefault(id(parameter), f"parameter:{prefix}{discovery.plain(name)}")
        for name, buffer in model.named_buffers():
            tensors.setdefault(id(buffer), f"buffer:{prefix}{discovery.plain(name)}")
    return tensors, modules


def name_held(optimizers: Iterable[Any], names: dict[int, str], frame: FrameType | None) -> None:
    """Add what optimizers hold: their state, and tensors of no model by the user's variables."""
    optimizers = list(optimizers)
    held = [p for o in optimizers for group in o.param_groups for p in group["params"]]
    plain = {id(p) for p in held if id(p) not in names}
    known = discovery.variable_names(frame, plain) if plain else {}
    for number, key in enumerate(sorted(plain)):
        names[key] = f"parameter:{known.get(key, f'tensor {number} of the optimizer')}"
    for optimizer in optimizers:
        for parameter, state in optimizer.state.items():
            owner = names.get(id(parameter), "").removeprefix("parameter:")
            for key, value in state.items() if isinstance(state, dict) else ():
                if isinstance(value, torch.Tensor):
                    names.setdefault(id(value), f"state:{owner}/{key}")


def _tensors(values: Iterable[Any]) -> Iterator[Any]:
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from _tensors(value[:MAX_NESTED])


def _scalars(func: Any, args: Any, kwargs: Any) -> Iterator[tuple[str, Any]]:
    """Yield the arguments that are numbers, words or lists of whole numbers, by name."""
    names = [argument.name for argument in func._schema.arguments]
    given = [*zip(names, args), *kwargs.items()]
    for name, value in given[:MAX_SCALARS]:
        if isinstance(value, (bool, int, float, str)):
            yield name, value
        elif isinstance(value, torch.dtype):
            yield name, str(value)[6:]
        elif isinstance(value, (list, tuple)) and value and all(type(v) is int for v in value):
            yield name, list(value[:8])


def _written(func: Any, args: Any, kwargs: Any) -> Iterator[int]:
    """Yield the identity of the tensors that an operation changes."""
    if not func._schema.is_mutable:
        return
    for index, argument in enumerate(func._schema.arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            value = args[index] if index < len(args) else kwargs.get(argument.name)
            for tensor in _tensors((value,)):
                yield id(tensor)
