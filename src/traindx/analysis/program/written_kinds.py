"""What a value in training code is: an optimizer, a scheduler, a model, a loss, a loader.

First by what it was made from, through imports; then, where that is out of sight (a parameter, a
factory in another package), by the words of its name. `is_certain` tells the two apart.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

from traindx.analysis.program.arguments import handed_over
from traindx.analysis.program.project import Project
from traindx.analysis.program.syntax import Module, key_of


class WrittenKind(str, Enum):
    """The roles that matter in a training loop."""

    OPTIMIZER = "optimizer"
    SCHEDULER = "scheduler"
    SCALER = "scaler"
    MODEL = "model"
    LOSS = "loss"
    LOADER = "loader"
    ACCELERATOR = "accelerator"
    OTHER = "other"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class WrittenValue:
    """A value's role, the call that made it, and what was called."""

    kind: WrittenKind
    made_by: str = ""
    call: ast.Call | None = None
    is_certain: bool = False


UNKNOWN = WrittenValue(WrittenKind.UNKNOWN)

OPTIMIZERS = frozenset(
    {"SGD", "Adam", "AdamW", "Adagrad", "Adadelta", "Adamax", "NAdam", "RAdam", "RMSprop", "Rprop",
     "ASGD", "LBFGS", "SparseAdam", "Adafactor", "Muon", "Lion", "LAMB", "Lamb", "LARS", "SAM",
     "FusedAdam", "DeepSpeedCPUAdam", "Ranger", "AdaBelief", "AdamW8bit", "Adam8bit", "Prodigy",
     "Sophia", "SophiaG", "Shampoo", "SOAP", "Adan", "PagedAdamW8bit"}
)  # fmt: skip
LOSS_CLASSES = re.compile(r"(Loss|Criterion)$")
LOSS_FUNCTIONS = frozenset(
    {"cross_entropy", "nll_loss", "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss",
     "binary_cross_entropy", "binary_cross_entropy_with_logits", "kl_div", "ctc_loss",
     "cosine_embedding_loss", "triplet_margin_loss", "hinge_embedding_loss", "gaussian_nll_loss",
     "poisson_nll_loss", "margin_ranking_loss", "multi_margin_loss", "multilabel_margin_loss",
     "soft_margin_loss"}
)  # fmt: skip
WORDS = {
    WrittenKind.SCHEDULER: {"scheduler", "sched", "schedule", "lrs", "schedulers"},
    WrittenKind.OPTIMIZER: {"optimizer", "optim", "opt", "optimiser", "optimizers", "optims",
                            "opts"},
    WrittenKind.SCALER: {"scaler", "gradscaler"},
    WrittenKind.LOADER: {"loader", "dataloader", "loaders", "dl", "dataloaders"},
    WrittenKind.ACCELERATOR: {"accelerator", "fabric"},
    WrittenKind.LOSS: {"criterion", "lossfn", "criterions"},
    WrittenKind.OTHER: {"env", "prof", "profiler", "pbar", "bar", "timer", "writer", "envs",
                        "progress"},
    WrittenKind.MODEL: {"model", "net", "network", "module", "discriminator", "generator",
                 "encoder",
                 "decoder", "netg", "netd", "models", "actor", "critic", "policy"},
}  # fmt: skip
# a call around a model that gives the model back
WRAPPERS = frozenset(
    {"compile", "DataParallel", "DistributedDataParallel", "DDP", "FSDP", "fully_shard", "to",
     "cuda", "cpu", "half", "float", "double", "bfloat16", "train", "eval", "script",
     "requires_grad_", "FullyShardedDataParallel", "prepare", "setup", "convert_sync_batchnorm"}
)  # fmt: skip


def value_of(
    project: Project, module: Module, at: ast.AST, node: ast.expr, depth: int = 4
) -> WrittenValue:
    """Say what an expression is at a place in the code."""
    if isinstance(node, ast.Call):
        return _made_value(project, module, at, node, depth)
    key = key_of(node)
    if key is None or depth == 0:
        return UNKNOWN
    guess: WrittenValue | None = None
    for value in reversed(project.lookup(module, at, key)):
        if key_of(value) == key:
            continue  # `model, opt = prepare(model, opt)`: the same thing again
        found = value_of(project, module, at, value, depth - 1)
        if found.call is not None:
            return found
        if found.kind is not WrittenKind.UNKNOWN:
            guess = guess or found
    return _handed_value(project, module, at, key, depth) or guess or named_value(key)


def _handed_value(
    project: Project, module: Module, at: ast.AST, key: str, depth: int
) -> WrittenValue | None:
    """What callers give for a parameter, where all of them give one and the same thing."""
    handed = handed_over(project, module, at, key)
    values = [value_of(project, m, scope, node, depth - 1) for m, scope, node in handed]
    calls = {v.call for v in values}
    return values[0] if len(calls) == 1 and values[0].call is not None else None


def _made_value(
    project: Project, module: Module, at: ast.AST, call: ast.Call, depth: int
) -> WrittenValue:
    name = module.qualified(call.func) or _attribute(call)
    kind = kind_made_by(name)
    if kind is not None:
        return WrittenValue(kind, name, call, True)
    found = project.find_class(module, name)
    if found is not None and project.is_module(*found):
        is_loss = bool(LOSS_CLASSES.search(found[1].name))
        return WrittenValue(WrittenKind.LOSS if is_loss else WrittenKind.MODEL, name, call, True)
    last = name.rsplit(".", 1)[-1]
    if last in WRAPPERS and depth:
        inner = call.func.value if isinstance(call.func, ast.Attribute) else None
        for candidate in (*call.args[:1], inner):
            if candidate is not None and module.qualified(candidate) != "torch":
                value = value_of(project, module, at, candidate, depth - 1)
                if value.kind is not WrittenKind.UNKNOWN:
                    return value
    return UNKNOWN


def _attribute(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else ""


@lru_cache(maxsize=8192)
def kind_made_by(name: str) -> WrittenKind | None:
    """Return the role of what a constructor or factory of that dotted name makes."""
    last = name.rsplit(".", 1)[-1]
    if "lr_scheduler" in name or re.search(r"^get_.*schedule|get_scheduler|LRScheduler$", last):
        return WrittenKind.SCHEDULER
    if name.startswith("torch.optim.") or last in OPTIMIZERS:
        return WrittenKind.OPTIMIZER
    if last in {"GradScaler", "ShardedGradScaler"}:
        return WrittenKind.SCALER
    if last in {"DataLoader", "StatefulDataLoader"}:
        return WrittenKind.LOADER
    if last in {"Accelerator", "Fabric"}:
        return WrittenKind.ACCELERATOR
    if name.startswith(("torch.nn.", "nn.")) and LOSS_CLASSES.search(last):
        return WrittenKind.LOSS
    if name.startswith("torch.nn.") and last[:1].isupper():
        return WrittenKind.MODEL
    if last in {"profile", "tqdm", "SummaryWriter"}:
        return WrittenKind.OTHER
    return None


@lru_cache(maxsize=8192)
def named_value(key: str) -> WrittenValue:
    """Guess a role from the words of a name."""
    words = {w for w in re.split(r"[^a-z]+", _snake(key.rsplit(".", 1)[-1])) if w}
    joined = "".join(sorted(words, key=key.lower().find))
    for kind, known in WORDS.items():
        if words & known or joined in known:
            return WrittenValue(kind)
    return UNKNOWN


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
