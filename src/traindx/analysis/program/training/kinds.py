"""What a value is in training: an optimizer, a scheduler, a model, a loss, a loader.

By what it was made from; else by what is done with it; else, uncertainly, by its names.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

from traindx.analysis.program.execution.model_zoo import makes_model
from traindx.analysis.program.execution.values import (
    Choice,
    External,
    Instance,
    Part,
    Result,
    Unknown,
    Value,
)


class Kind(str, Enum):
    """The roles that matter in a training program."""

    OPTIMIZER = "optimizer"
    SCHEDULER = "scheduler"
    SCALER = "scaler"
    MODEL = "model"
    LOSS = "loss"
    LOADER = "loader"
    ENGINE = "engine"  # Accelerate, Fabric, DeepSpeed: what steps and calls backward for its user
    OTHER = "other"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Nature:
    """A role, and whether it is certain."""

    kind: Kind
    is_certain: bool = True


UNKNOWN = Nature(Kind.UNKNOWN, False)
OPTIMIZERS = frozenset(
    {"SGD", "Adam", "AdamW", "Adagrad", "Adadelta", "Adamax", "NAdam", "RAdam", "RMSprop", "Rprop",
     "ASGD", "LBFGS", "SparseAdam", "Adafactor", "Muon", "Lion", "LAMB", "Lamb", "LARS", "SAM",
     "FusedAdam", "DeepSpeedCPUAdam", "Ranger", "AdaBelief", "AdamW8bit", "Adam8bit", "Prodigy",
     "Sophia", "SophiaG", "Shampoo", "SOAP", "Adan", "PagedAdamW8bit", "ZeroRedundancyOptimizer",
     "create_optimizer", "create_optimizer_v2"}
)  # fmt: skip
LOADERS = frozenset({"DataLoader", "StatefulDataLoader", "DataListLoader", "NeighborLoader"})
SCHEDULERS = re.compile(r"^get_.*schedule|get_scheduler|LRScheduler$|^create_scheduler")
MODEL_BASES = ("torch.nn.", "transformers.", "lightning.LightningModule", "torch.jit.ScriptModule")
LOSS_NAME = re.compile(r"(?:Loss|Criterion)$")
PRETRAINED = ("from_pretrained", "from_config", "create_model", "get_model")
# what only one kind of value is asked to do
DEEDS = {
    Kind.SCALER: {"unscale_", "get_scale"},
    Kind.OPTIMIZER: {"add_param_group"},
    Kind.MODEL: {"parameters", "named_parameters", "eval", "modules", "named_modules", "children",
                 "named_children", "buffers"},
    Kind.SCHEDULER: {"get_last_lr", "get_lr"},
}  # fmt: skip
WORDS = {
    Kind.SCHEDULER: {"scheduler", "sched", "schedule", "lrs", "schedulers"},
    Kind.OPTIMIZER: {"optimizer", "optim", "opt", "optimiser", "optimizers", "optims", "opts"},
    Kind.SCALER: {"scaler", "gradscaler"},
    Kind.LOADER: {"loader", "dataloader", "loaders", "dl", "dataloaders", "batches"},
    Kind.ENGINE: {"accelerator", "fabric"},
    Kind.LOSS: {"criterion", "lossfn", "criterions"},
    Kind.OTHER: {"env", "prof", "profiler", "pbar", "bar", "timer", "writer", "envs", "progress"},
    Kind.MODEL: {"model", "net", "network", "module", "discriminator", "generator", "encoder",
                 "decoder", "netg", "netd", "models", "actor", "critic", "policy"},
}  # fmt: skip
TELLING = frozenset({"zero_grad", "step", "scale", "update"}).union(*DEEDS.values())


def made_kind(value: Value) -> Nature | None:
    """Return what a value is by what made it; None where that is out of sight."""
    if isinstance(value, Instance):
        return _instance_kind(value)
    if isinstance(value, Choice):
        found = {n for o in value.options if (n := made_kind(o)) is not None}
        return found.pop() if len(found) == 1 else None
    if not isinstance(value, Result) or value.maker in ("()", "builtins.next"):
        return None
    if value.receiver is not None and value.maker.rsplit(".", 1)[-1] not in PRETRAINED:
        return None
    kind = kind_made_by(value.maker)
    return None if kind is None else Nature(kind)


def _instance_kind(value: Instance) -> Nature:
    foreign = value.cls.foreign
    if is_module_class(foreign):
        is_loss = bool(LOSS_NAME.search(value.cls.node.name))
        return Nature(Kind.LOSS if is_loss else Kind.MODEL)
    for base in foreign:
        kind = kind_made_by(base)
        if kind is not None:
            return Nature(kind)
    return Nature(Kind.OTHER, not foreign)


@lru_cache(maxsize=1024)
def is_module_class(foreign: tuple[str, ...]) -> bool:
    """Tell whether a class with these bases outside of the project is a torch module."""
    return any(
        f in ("torch.nn.Module", "nn.Module", "torch.jit.ScriptModule")
        or f.rsplit(".", 1)[-1] in ("LightningModule", "PreTrainedModel", "Module")
        or (f.startswith("torch.nn.") and f.rsplit(".", 1)[-1][:1].isupper())
        for f in foreign
    )


@lru_cache(maxsize=8192)
def kind_made_by(name: str) -> Kind | None:
    """Return the role of what a constructor or factory of that dotted name makes."""
    last = name.rsplit(".", 1)[-1]
    if name.startswith("torch.optim.") and not last[:1].isupper():
        return None  # a function of torch's
    if "lr_scheduler" in name or SCHEDULERS.search(last):
        return Kind.SCHEDULER
    if "swa_utils" in name:
        return {"AveragedModel": Kind.MODEL, "SWALR": Kind.SCHEDULER}.get(last)
    if name.startswith("torch.optim.") or last in OPTIMIZERS:
        return Kind.OPTIMIZER
    if last in {"GradScaler", "ShardedGradScaler"}:
        return Kind.SCALER
    if last in LOADERS:
        return Kind.LOADER
    if last in {"Accelerator", "Fabric"} or name == "deepspeed.initialize":
        return Kind.ENGINE
    if name.startswith("torch.nn.") and "functional" not in name and last[:1].isupper():
        if last == "Parameter":
            return None
        return Kind.LOSS if LOSS_NAME.search(last) else Kind.MODEL
    if makes_model(name):
        return Kind.MODEL
    if last in PRETRAINED and "okenizer" not in name and "onfig" not in name.rsplit(".", 2)[-2]:
        return Kind.MODEL if not name.startswith(".") else None
    if last in {"profile", "tqdm", "SummaryWriter"}:
        return Kind.OTHER
    return None


def kind_by_deeds(deeds: set[str]) -> Nature | None:
    """Return what a value is by what the program asks of it."""
    for kind, telling in DEEDS.items():
        if deeds & telling:
            return Nature(kind)
    if "zero_grad" in deeds and "step" in deeds:
        return Nature(Kind.OPTIMIZER)
    if "scale" in deeds and "step" in deeds and "update" in deeds:
        return Nature(Kind.SCALER)
    return None


def kind_by_name(value: Value) -> Nature:
    """Guess what a value is from the words of its names."""
    annotation = value.annotation if isinstance(value, Unknown) else ""
    if annotation:
        last = annotation.strip("'\"").rsplit(".", 1)[-1].split("[")[0].rstrip(" |None")
        kind = kind_made_by(last) or {"Optimizer": Kind.OPTIMIZER, "Module": Kind.MODEL,
                                      "DataLoader": Kind.LOADER, "LRScheduler": Kind.SCHEDULER,
                                      "_LRScheduler": Kind.SCHEDULER}.get(last)  # fmt: skip
        if kind is not None:
            return Nature(kind)
    for name in names_of(_collection(value)):
        found = kind_of_name(name)
        if found is not Kind.UNKNOWN:
            return Nature(found, False)
    return UNKNOWN


def _collection(value: Value) -> Value:
    """Return what a value is an item of: `loaders[phase]` is what its collection is called."""
    if isinstance(value, Result) and value.maker == "operator.getitem" and not value.names:
        return value.args[0]
    return value


def names_of(value: Value) -> list[str]:
    """Return the names that a value goes by, its own first."""
    own = value.name if isinstance(value, (Unknown, External)) else ""
    key = value.key if isinstance(value, Part) and isinstance(value.key, str) else ""
    return [n for n in (own.rsplit(".", 1)[-1], key, *sorted(value.names)) if n]


def words_of(name: str) -> set[str]:
    """Return the words of a name in small letters: `train`, `loader` of `trainLoader2`."""
    return set(_words_in_order(name))


@lru_cache(maxsize=8192)
def _words_in_order(name: str) -> tuple[str, ...]:
    apart = re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()
    return tuple(w for w in re.split(r"[^a-z]+", apart) if w)


@lru_cache(maxsize=8192)
def kind_of_name(name: str) -> Kind:
    """Return the role that the words of a name speak of."""
    words = _words_in_order(name)
    for kind, known in WORDS.items():
        if set(words) & known or "".join(words) in known:
            return kind
    return Kind.UNKNOWN
