"""What is what in a checkpoint: the model, the optimizer, the counters, the configuration.

There is no standard; there are habits. Weights may be the whole file, or stand under a key such as
`state_dict` beside the state of the training.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from traindx.readers.formats.checkpoint.pickled_calls import PickledObject, Stored

MAX_TENSORS = 200_000
MAX_DEPTH = 40
MAX_VISITS = 1_000_000  # a pickle may refer to one object from many places
MAX_SETTINGS = 500
LONGEST_VALUE = 500

_MODELS = (
    "state_dict", "model_state_dict", "model", "model_state", "module", "net", "network", "params",
    "weights", "student", "policy", "model_dict", "net_state_dict", "state",
)  # fmt: skip
_AVERAGES = re.compile(r"ema|swa|averag|shadow", re.IGNORECASE)
_OPTIMIZER = re.compile(r"^(?:\w*_)?(?:optim\w*|opt)(?:_\w+|\d+|[A-Z])?$", re.IGNORECASE)
_SCHEDULER = re.compile(r"sched", re.IGNORECASE)
_SCALER = re.compile(r"scaler|^amp$", re.IGNORECASE)
_RANDOM = re.compile(r"rng|random_state|^random$", re.IGNORECASE)
_OTHER_STATE = re.compile(
    r"^(?:callbacks|loops|datamodule|train_dataloader|sampler)", re.IGNORECASE
)
_STEPS = ("global_step", "step", "steps", "iteration", "iter", "iter_num", "num_updates",
          "n_iter", "it", "current_step", "train_step", "total_steps")  # fmt: skip
_EPOCHS = ("epoch", "current_epoch", "epochs", "last_epoch", "start_epoch")
_CONFIGURATIONS = frozenset(
    {"hyper_parameters", "hparams", "config", "cfg", "args", "opt", "options", "model_args",
     "train_args", "training_args", "settings", "params"}
)  # fmt: skip
_INSIDE_MODULES = frozenset({"_parameters", "_buffers", "_modules"})
_OWN_STATE = re.compile(r"^_(?!parameters$|buffers$|modules$)|hooks?$|^training$")
_PARAMETER_KEY = re.compile(r"\.|(?:^|_)(?:weight|bias|gamma|beta|kernel)$")


@dataclass(slots=True)
class Contents:
    """What a checkpoint holds, by role."""

    tensors: list[tuple[str, Stored]] = field(default_factory=list)
    settings: list[tuple[str, Any]] = field(default_factory=list)
    has_state: bool = False  # anything beside weights
    step: float | None = None
    epoch: float | None = None


def understand(value: Any) -> Contents:
    """Find the model and the state of the training in what a checkpoint holds."""
    found = Contents()
    if isinstance(value, PickledObject):
        _understand_object(value, found)
    elif isinstance(value, dict) and _is_optimizer(value):
        found.has_state = True
        found.settings += [("checkpoint.has_optimizer", True), *_optimizer_settings(value)]
    elif isinstance(value, dict) and _is_weights(value):
        found.tensors = list(named_tensors(value))
    elif isinstance(value, dict):
        _understand_dict(value, found)
    return found


def _understand_object(value: PickledObject, found: Contents) -> None:
    found.tensors = list(named_tensors(value))
    if not found.tensors and isinstance(value.attributes, dict):
        name = value.kind.rsplit(".", 1)[-1]
        prefix = "training_args" if name.endswith("TrainingArguments") else name or "object"
        found.settings += _plain_settings(value, prefix)


def _understand_dict(value: dict[Any, Any], found: Contents) -> None:
    found.tensors = _model_of(value)
    texts = {k: v for k, v in value.items() if isinstance(k, str)}
    for key, held in texts.items():
        if key in _CONFIGURATIONS and not _is_optimizer(held) and not _holds_tensors(held):
            found.settings += _plain_settings(held, key)
    optimizers = [o for k, v in texts.items() for o in _optimizers(k, v)]
    if not found.tensors and not optimizers:
        return  # a scheduler's or a generator's state, or a data set: their counters are their own
    found.step = _counter(texts, _STEPS)
    found.epoch = _counter(texts, _EPOCHS)
    has = {
        "optimizer": bool(optimizers),
        "scheduler": any(_SCHEDULER.search(k) and _is_filled(v) for k, v in texts.items()),
        "scaler": any(_SCALER.search(k) and _is_filled(v) for k, v in texts.items()),
        "rng": any(_RANDOM.search(k) and _is_filled(v) for k, v in texts.items()),
    }
    found.has_state = any(has.values()) or found.step is not None or found.epoch is not None
    if found.has_state:
        found.settings += [(f"checkpoint.has_{k}", v) for k, v in has.items()]
        found.settings += [("checkpoint.has_model", bool(found.tensors))]
    for name, number in (("step", found.step), ("epoch", found.epoch)):
        if number is not None:
            found.settings.append((f"checkpoint.{name}", int(number)))
    for optimizer in optimizers[:1]:
        found.settings += _optimizer_settings(optimizer)


def _is_filled(value: Any) -> bool:
    return value is not None and value not in ({}, [], ())


def _is_weights(value: dict[Any, Any]) -> bool:
    """Tell a bare state dict from a data set of tensors and from a training checkpoint."""
    tensors = [k for k, v in value.items() if isinstance(v, Stored)]
    if not tensors or len(tensors) < 0.5 * len(value) or not all(isinstance(k, str) for k in value):
        return False
    return any(_PARAMETER_KEY.search(k) for k in tensors)


def _is_optimizer(value: Any) -> bool:
    return isinstance(value, dict) and "param_groups" in value and "state" in value


def _optimizers(key: str, value: Any) -> Iterator[Any]:
    """Yield the optimizer states under a key; Lightning keeps a list of them."""
    each = value if isinstance(value, (list, tuple)) else [value]
    if isinstance(value, dict) and not _is_optimizer(value):
        each = list(value.values())[:20]
    for one in each[:20]:
        if _is_optimizer(one):
            yield one
    is_other_form = _OPTIMIZER.match(key) and not any(_is_optimizer(o) for o in each[:20])
    if is_other_form and _holds_tensors(value):
        yield value


def _optimizer_settings(optimizer: Any) -> Iterator[tuple[str, Any]]:
    """Yield the hyperparameters of an optimizer's first group.

    A schedule lowers `lr` and keeps what was configured as `initial_lr`; the former alone is no
    fault, for many schedules end at zero.
    """
    groups = optimizer.get("param_groups") if isinstance(optimizer, dict) else None
    groups = [g for g in groups if isinstance(g, dict)] if isinstance(groups, list) else []
    if not groups:
        return
    first = groups[0]
    rate, initial = _number(first.get("lr")), _number(first.get("initial_lr"))
    configured = initial if initial is not None else rate
    if configured:
        yield "checkpoint.optimizer.lr", configured
    if (rate is not None and rate != configured) or rate == 0:
        yield "checkpoint.optimizer.final_lr", rate
    for name in ("weight_decay", "momentum", "eps", "amsgrad", "nesterov"):
        if isinstance(first.get(name), (int, float)):
            yield f"checkpoint.optimizer.{name}", first[name]
    betas = first.get("betas")
    if isinstance(betas, (tuple, list)) and all(_number(b) is not None for b in betas):
        yield "checkpoint.optimizer.betas", str(tuple(betas))
    held = [g.get("params") for g in groups]
    if all(isinstance(p, list) for p in held):
        yield "checkpoint.optimizer.parameters", sum(len(p) for p in held if p is not None)


def _number(value: Any) -> float | None:
    """Return an ordinary number; a count of more digits than a float is none."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if abs(value) < 1e15 else None


def _counter(texts: dict[str, Any], names: tuple[str, ...]) -> float | None:
    for name in names:
        number = _number(texts.get(name))
        if number is not None and number >= 0 and number == int(number):
            return number
    return None


def _model_of(value: dict[Any, Any]) -> list[tuple[str, Stored]]:
    """Return the parameters: those under a usual key, else those of every part that has some."""
    for name in _MODELS:
        if name in value and not _is_optimizer(value[name]):
            tensors = _weights_under(value[name])
            if tensors:
                return tensors
    parts = {
        k: _weights_under(v)
        for k, v in value.items()
        if isinstance(k, str) and not _is_training_state(k, v)
    }
    parts = {k: tensors for k, tensors in parts.items() if tensors}
    averages = {k for k in parts if _AVERAGES.search(k)}
    if averages and len(averages) < len(parts):
        parts = {k: tensors for k, tensors in parts.items() if k not in averages}
    if len(parts) == 1:
        return next(iter(parts.values()))
    return [(f"{k}.{name}", tensor) for k, tensors in parts.items() for name, tensor in tensors]


def _is_training_state(key: str, value: Any) -> bool:
    patterns = (_OPTIMIZER, _SCHEDULER, _SCALER, _RANDOM, _OTHER_STATE)
    return _is_optimizer(value) or any(p.search(key) for p in patterns)


def _weights_under(value: Any) -> list[tuple[str, Stored]]:
    if isinstance(value, dict) and not _is_weights(value):
        for name in _MODELS:
            if isinstance(value.get(name), (dict, PickledObject)):
                inner = _weights_under(value[name])
                if inner:
                    return inner
        return []
    return list(named_tensors(value)) if isinstance(value, (dict, PickledObject)) else []


def _holds_tensors(value: Any) -> bool:
    return next(named_tensors(value), None) is not None


def named_tensors(value: Any) -> Iterator[tuple[str, Stored]]:
    """Yield every tensor in nested containers and modules by its dotted name."""
    waiting: list[tuple[str, Any, int]] = [("", value, 0)]
    seen: set[int] = set()
    count = 0
    for _ in range(MAX_VISITS):
        if not waiting or count >= MAX_TENSORS:
            return
        name, node, depth = waiting.pop()
        if isinstance(node, Stored):
            count += 1
            yield name, node
        elif depth < MAX_DEPTH and id(node) not in seen:
            if isinstance(node, (dict, list, PickledObject)):
                seen.add(id(node))
            below = [(_joined(name, k), v, depth + 1) for k, v in _children(node)]
            waiting += reversed(below)


def _children(node: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(node, PickledObject):
        is_module = "_modules" in node.attributes
        for key, value in node.attributes.items():
            if not (is_module and _OWN_STATE.search(str(key))):
                yield str(key), value
    elif isinstance(node, dict):
        yield from ((str(k)[:300], v) for k, v in node.items())
    elif isinstance(node, (list, tuple)) and len(node) <= 10_000:
        yield from ((str(i), v) for i, v in enumerate(node))


def _joined(path: str, key: str) -> str:
    if key in _INSIDE_MODULES:
        return path
    return f"{path}.{key}" if path else key


def _plain_settings(value: Any, prefix: str) -> list[tuple[str, Any]]:
    """Return the plain values in a configuration by dotted key."""
    made: list[tuple[str, Any]] = []
    waiting: list[tuple[str, Any, int]] = [(prefix, value, 0)]
    for _ in range(20 * MAX_SETTINGS):
        if not waiting or len(made) >= MAX_SETTINGS:
            break
        key, node, depth = waiting.pop()
        node = node.attributes if isinstance(node, PickledObject) else node
        if isinstance(node, dict) and depth < 6:
            below = list(node.items())[:MAX_SETTINGS]
            waiting += [(f"{key}.{str(k)[:100]}", v, depth + 1) for k, v in reversed(below)]
        elif isinstance(node, bool) or _number(node) is not None:
            made.append((key, node))
        elif isinstance(node, str) and node:
            made.append((key, node[:LONGEST_VALUE]))
    return made
