"""The programs that a framework runs around the user's hooks: Lightning, Transformers, Ignite.

What the framework does by itself (backward, step, zero_grad, modes, no gradients in validation) is
done here in its place, so that a rule sees one program, whoever wrote the loop.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from traindx.analysis.program.execution import calls, iteration, library, names
from traindx.analysis.program.execution.events import EventForm, LoopRun
from traindx.analysis.program.execution.machine import TURNS, BlockEnd
from traindx.analysis.program.execution.truth import is_none
from traindx.analysis.program.execution.values import (
    Answer,
    Choice,
    ClassValue,
    FunctionValue,
    HandedCall,
    Instance,
    Items,
    Known,
    Result,
    Scope,
    Site,
    Table,
    Unknown,
    Value,
    constant,
)

if TYPE_CHECKING:
    from traindx.analysis.program.execution.machine import Machine

Keywords = Mapping[str, Value]


def is_trainer(value: Value | None) -> bool:
    """Tell whether a value is a framework's trainer."""
    if isinstance(value, Instance):
        return any(base.rsplit(".", 1)[-1].endswith("Trainer") for base in value.cls.foreign)
    if isinstance(value, Result) and value.receiver is None:
        root, last = value.maker.split(".", 1)[0], value.maker.rsplit(".", 1)[-1]
        return last.endswith("Trainer") and root in ("lightning", "transformers", "trl", "peft")
    return False


def is_lightning_module(value: Value | None) -> bool:
    """Tell whether an object's training is driven by Lightning."""
    return isinstance(value, Instance) and any(
        base.rsplit(".", 1)[-1] == "LightningModule" for base in value.cls.foreign
    )


def drive(
    m: Machine, trainer: Value, name: str, args: Sequence[Value], kwargs: Keywords, node: ast.AST,
    scope: Scope,
) -> bool:  # fmt: skip
    """Run what a trainer's method runs; tell whether it is one that is known."""
    model = args[0] if args else kwargs.get("model")
    if name == "fit" and isinstance(model, Instance) and is_lightning_module(model):
        data = [*args[1:], *(v for k, v in kwargs.items() if k != "model")]
        fit_lightning(m, model, data, scope, trainer)
        return True
    if name == "train" and not is_lightning_module(model):
        _train_transformers(m, trainer, node, scope)
        return True
    return False


class _Hooks:
    """A model's hooks and its callbacks', called by name where they have them."""

    def __init__(
        self, m: Machine, owner: Instance, scope: Scope, callbacks: Sequence[_Hooks] = ()
    ) -> None:
        self.m, self.owner, self.scope, self.callbacks = m, owner, scope, callbacks

    def find(self, name: str) -> FunctionValue | None:
        found = names.find_method(self.m, self.owner.cls, name, self.owner)
        return found if isinstance(found, FunctionValue) else None

    def call(self, name: str, *args: Value) -> Value | None:
        for callback in self.callbacks:
            callback.call(name, self.trainer, self.owner, *args)
        hook = self.find(name)
        if hook is None:
            return None
        taken = len(hook.node.args.args) - 1
        given = args if hook.node.args.vararg is not None else args[: max(taken, 0)]
        return calls.call(self.m, hook, given, {}, hook.node, Scope(hook.module))

    def call_by_name(self, name: str, named: Mapping[str, Value]) -> None:
        """Call a hook of Transformers', which gets arguments, state and control, and the rest."""
        hook = self.find(name)
        if hook is None:
            return
        first = [Unknown(name=n) for n in ("args", "state", "control")]
        spec = hook.node.args
        known = {p.arg for p in (*spec.args, *spec.kwonlyargs)}
        given = {k: v for k, v in named.items() if spec.kwarg is not None or k in known}
        calls.call(self.m, hook, first, given, hook.node, Scope(hook.module))

    @property
    def trainer(self) -> Value:
        """The trainer as the model sees it."""
        return self.owner.fields.setdefault("trainer", Unknown(name="trainer"))

    def site(self, name: str) -> Site:
        hook = self.find(name)
        return Site(hook.module, hook.node) if hook is not None else _site_of(self.owner)


def _site_of(owner: Instance) -> Site:
    return Site(owner.cls.module, owner.cls.node)


def fit_lightning(
    m: Machine, model: Instance, data: Sequence[Value], scope: Scope, trainer: Value | None = None
) -> None:
    """Run what `Trainer.fit` runs."""
    hooks = _Hooks(m, model, scope, _callbacks(m, trainer, scope))
    hooks.call("setup", Unknown(name="stage"))
    configured = hooks.call("configure_optimizers") or Unknown()
    optimizers = _found(configured, "torch.optim.", but="lr_scheduler")
    model.fields[OPTIMIZERS] = iteration.items_of(optimizers)
    model.fields[SCHEDULES] = iteration.items_of(_schedules(configured))
    hooks.trainer.fields.setdefault("optimizers", model.fields[OPTIMIZERS])
    loaders = _loaders(m, hooks, data)
    for name in ("on_fit_start", "on_train_start"):
        hooks.call(name)
    epochs = LoopRun(_site_of(model), Result("builtins.range"))

    def epoch(number: Value | None) -> BlockEnd:
        library.begin_training(m, model)
        hooks.call("on_train_epoch_start")
        _train_epoch(m, hooks, optimizers, loaders[0], trainer)
        _step_schedules(m, model, _site_of(model), "epoch")
        hooks.call("on_train_epoch_end")
        hooks.call("training_epoch_end", Unknown(name="outputs"))
        _held_out(m, hooks, model, "validation", loaders[1])
        return BlockEnd.NEXT

    m.run_loop(epochs, iter([None] * TURNS), epoch)
    _held_out(m, hooks, model, "test", loaders[2])


def _callbacks(m: Machine, trainer: Value | None, scope: Scope) -> list[_Hooks]:
    """Return the callbacks of the project's own that a trainer is given."""
    given = trainer.kwargs.get("callbacks") if isinstance(trainer, Result) else None
    return _listed_callbacks(m, given, scope)


def _listed_callbacks(m: Machine, given: Value | None, scope: Scope) -> list[_Hooks]:
    found = [] if given is None else iteration.members(given) or [given]
    return [_Hooks(m, callback, scope) for callback in found if isinstance(callback, Instance)]


OPTIMIZERS = "configured optimizers"
SCHEDULES = "configured schedules"


def configured(model: Value, name: str) -> Value | None:
    """Return what `self.optimizers()` and `self.lr_schedulers()` give: the one, or a list."""
    key = {"optimizers": OPTIMIZERS, "lr_schedulers": SCHEDULES}.get(name)
    if key is None or key not in model.fields:
        return None
    found = iteration.members(model.fields[key]) or []
    made = [pair.fields[0] for pair in found] if key == SCHEDULES else found
    return made[0] if len(made) == 1 else iteration.items_of(made)


def _schedules(configured: Value, interval: str = "epoch", depth: int = 6) -> list[Value]:
    """Return the schedules among what a model configures, each with when it is stepped."""
    is_own = isinstance(configured, Instance) and not is_lightning_module(configured)
    if is_own or (isinstance(configured, Result) and "lr_scheduler" in configured.maker):
        return [iteration.items_of((configured, Known(interval)), "tuple")]
    if isinstance(configured, Choice) and depth:
        options = configured.options
        return [s for option in options for s in _schedules(option, interval, depth - 1)]
    if isinstance(configured, Table) and "scheduler" in configured.fields:
        given = constant(configured.fields.get("interval"))
        interval = given if isinstance(given, str) else interval
    if not isinstance(configured, (Items, Table)) or depth == 0:
        return []
    inner = configured.fields.values()
    return [s for value in inner for s in _schedules(value, interval, depth - 1)]


def _step_schedules(m: Machine, model: Instance, site: Site, interval: str) -> None:
    """Step what Lightning steps by itself, after each batch or each epoch."""
    if constant(model.fields.get("automatic_optimization")) is False:
        return
    held = model.fields.get(SCHEDULES)
    for pair in held.fields.values() if held is not None else ():
        schedule, when = pair.fields[0], pair.fields[1]
        if constant(when) != interval:
            continue
        if isinstance(schedule, Instance):
            _Hooks(m, schedule, Scope(schedule.cls.module)).call("step")
        else:
            event = m.record(EventForm.CALL, site, ".step", schedule, (), {}, site.node)
            event.by_framework = True


def _loaders(m: Machine, hooks: _Hooks, data: Sequence[Value]) -> list[Value]:
    """Return the loaders for training, validation and test."""
    found: list[Value] = []
    module = next((d for d in data if isinstance(d, Instance)), None)
    source = _Hooks(m, module, hooks.scope) if module is not None else hooks
    if module is not None:
        source.call("setup", Unknown(name="stage"))
    plain = [d for d in data if not isinstance(d, Instance)]
    for position, name in enumerate(("train_dataloader", "val_dataloader", "test_dataloader")):
        given = plain[position] if position < len(plain) else None
        made = given or source.call(name) or Unknown(name=name, names=frozenset({name}))
        made.add_name(name)
        found.append(made)
    return found


def _found(value: Value, prefix: str, but: str = "\0", depth: int = 6) -> list[Value]:
    """Return what is made by a library inside of lists, tuples and dictionaries."""
    if isinstance(value, Result) and value.maker.startswith(prefix) and but not in value.maker:
        return [value]
    if isinstance(value, (Items, Table, Choice)) and depth:
        inside = value.options if isinstance(value, Choice) else value.fields.values()
        found = [f for v in inside for f in _found(v, prefix, but, depth - 1)]
        return list({id(f): f for f in found}.values())
    return []


def _mode(m: Machine, model: Value, *, training: bool) -> None:
    library.set_mode(m, model, Known(training))


def _train_epoch(
    m: Machine, hooks: _Hooks, optimizers: Sequence[Value], loader: Value, trainer: Value | None
) -> None:
    site, model = hooks.site("training_step"), hooks.owner
    is_manual = constant(model.fields.get("automatic_optimization")) is False
    loop = LoopRun(site, loader)

    def step(batch: Value) -> BlockEnd:
        index = Result("builtins.next", args=(Result("builtins.range"),))
        given = _transferred(m, hooks, batch, "training")
        hooks.call("on_train_batch_start", given, index)
        found: Value | None = None
        for number, held in _shares(hooks, optimizers, is_manual):
            if is_manual:
                found = hooks.call("training_step", given, index, *number)
            else:
                found = _optimize(m, hooks, (given, index, *number), held, trainer)
        if not is_manual:
            _step_schedules(m, model, site, "step")
        hooks.call("on_train_batch_end", found or Unknown(name="outputs"), given, index)
        return BlockEnd.NEXT

    iteration.run_over(m, loop, loader, step, hooks.scope)


def _optimize(
    m: Machine, hooks: _Hooks, batch: Sequence[Value], optimizers: Sequence[Value],
    trainer: Value | None,
) -> Value | None:  # fmt: skip
    """Do what Lightning does with a batch: the loss, and an update by each optimizer."""
    site = hooks.site("training_step")
    found = hooks.call("training_step", *batch)
    for optimizer in optimizers or [Unknown(name="optimizer")]:
        step = _LightningStep(m, hooks, site, optimizer, trainer)
        if hooks.find("optimizer_step") is None:
            step.backward(found)
            _record(m, site, ".step", optimizer)
        else:
            closure = HandedCall(partial(step.backward, found))
            epoch = Unknown(name="epoch")
            hooks.call("optimizer_step", epoch, batch[1], optimizer, closure)
    return found


class _LightningStep:
    """An update by one optimizer, with the hooks around each of its parts."""

    def __init__(
        self, m: Machine, hooks: _Hooks, site: Site, optimizer: Value, trainer: Value | None
    ) -> None:
        self.m, self.hooks, self.site = m, hooks, site
        self.optimizer, self.trainer = optimizer, trainer

    def backward(self, found: Value | None) -> Value:
        """Clear the gradients, compute and clip them."""
        if found is None or is_none(found):
            return Known(None)
        loss = _loss_in(found)
        self._own("zero_grad", self.optimizer, "optimizer_zero_grad", self._clear_arguments())
        self._own("backward", loss, "backward", (loss,))
        self.hooks.call("on_after_backward")
        self.hooks.call("on_before_optimizer_step", self.optimizer)
        if self.hooks.find("configure_gradient_clipping") is None:
            _clip(self.m, self.optimizer, self.trainer)
        else:
            self.hooks.call("configure_gradient_clipping", self.optimizer, *self._bounds())
        return loss

    def _own(self, name: str, subject: Value, hook: str, given: Sequence[Value]) -> None:
        """Do a part of the step, in the model's own way where it has one."""
        self.hooks.call(f"on_before_{name}", subject)
        if self.hooks.find(hook) is None:
            _record(self.m, self.site, f".{name}", subject)
        else:
            self.hooks.call(hook, *given)

    def _clear_arguments(self) -> tuple[Value, ...]:
        return Unknown(name="epoch"), Unknown(name="batch_idx"), self.optimizer

    def _bounds(self) -> tuple[Value, ...]:
        told = self.trainer.kwargs if isinstance(self.trainer, Result) else {}
        asked = ("gradient_clip_val", "gradient_clip_algorithm")
        return tuple(told.get(name) or Known(None) for name in asked)


def _shares(
    hooks: _Hooks, optimizers: Sequence[Value], is_manual: bool
) -> list[tuple[tuple[Value, ...], Sequence[Value]]]:
    """Return the calls of a training step for one batch: its optimizer's number, and optimizers.

    Lightning before 2.0 runs the step once for each optimizer; one that does not ask which is
    taken to be called once.
    """
    hook = hooks.find("training_step")
    taken = 0 if hook is None else len(hook.node.args.args)
    if is_manual or len(optimizers) < 2 or taken < 4:
        return [((), optimizers)]
    return [((Known(n),), [optimizer]) for n, optimizer in enumerate(optimizers)]


PHASES = {"validation": "validating", "test": "testing"}


def _transferred(m: Machine, hooks: _Hooks, batch: Value, phase: str) -> Value:
    """Run the hooks that Lightning runs on every batch, of training and of validation alike."""
    trainer = hooks.trainer
    for name in ("training", *PHASES.values()):
        m.write(trainer.fields, name, Known(name == phase))
    for hook in ("on_before_batch_transfer", "on_after_batch_transfer"):
        found = hooks.call(hook, batch, Unknown(name="dataloader_idx"))
        batch = batch if found is None else found
    return batch


def _loss_in(value: Value) -> Value:
    """Return the loss that a step returns, by itself or in a dictionary."""
    if isinstance(value, Table) and "loss" in value.fields:
        return value.fields["loss"]
    if isinstance(value, Result) and "loss" in value.fields:
        return value.fields["loss"]
    return value


CLIPS = ("gradient_clip_val", "max_grad_norm")  # of Lightning, of Transformers


def _learn(
    m: Machine, site: Site, loss: Value, optimizers: Sequence[Value], told: Value | None = None
) -> None:
    """Do what a framework does with a loss; `told` is what its settings were given to."""
    for optimizer in optimizers or [Unknown(name="optimizer")]:
        for name, receiver in ((".zero_grad", optimizer), (".backward", loss)):
            _record(m, site, name, receiver)
        _clip(m, optimizer, told)
        _record(m, site, ".step", optimizer)


def _record(m: Machine, site: Site, name: str, receiver: Value | None, *args: Value) -> None:
    event = m.record(EventForm.CALL, site, name, receiver, args, {}, site.node)
    event.by_framework = True


def _clip(m: Machine, optimizer: Value, told: Value | None) -> None:
    """Clip the gradients as the settings say; zero and None turn it off."""
    if not isinstance(told, Result) or told.site is None or not isinstance(optimizer, Result):
        return
    bound = next((told.kwargs[name] for name in CLIPS if name in told.kwargs), None)
    if bound is None or not constant(bound) or not optimizer.args:
        return
    is_value = constant(told.kwargs.get("gradient_clip_algorithm")) == "value"
    name = "clip_grad_value_" if is_value else "clip_grad_norm_"
    _record(m, told.site, f"torch.nn.utils.{name}", None, optimizer.args[0], bound)


def _held_out(m: Machine, hooks: _Hooks, model: Instance, phase: str, loader: Value) -> None:
    if hooks.find(f"{phase}_step") is None:
        return
    before = library.modes_in(model)
    _mode(m, model, training=False)
    with m.switched(Answer.NO):
        hooks.call(f"on_{phase}_epoch_start")
        loop = LoopRun(hooks.site(f"{phase}_step"), loader)

        def step(batch: Value) -> BlockEnd:
            given = _transferred(m, hooks, batch, PHASES[phase])
            index = Unknown(name="batch_idx")
            hooks.call(f"on_{phase}_batch_start", given, index)
            found = hooks.call(f"{phase}_step", given, index) or Unknown(name="outputs")
            hooks.call(f"on_{phase}_batch_end", found, given, index)
            return BlockEnd.NEXT

        iteration.run_over(m, loop, loader, step, hooks.scope)
        hooks.call(f"on_{phase}_epoch_end")
        hooks.call(f"{phase}_epoch_end", Unknown(name="outputs"))
    library.restore_modes(m, before)


def _train_transformers(m: Machine, trainer: Value, node: ast.AST, scope: Scope) -> None:
    """Run what `Trainer.train` of Transformers runs."""
    given = _constructed(trainer)
    model = given.get("model") or Unknown(name="model")
    data = given.get("train_dataset") or Unknown(name="train_dataset")
    data.add_name("train_dataset")
    loop = LoopRun(Site(scope.module, node), data)
    hooks = _Hooks(m, trainer, scope) if isinstance(trainer, Instance) else None
    is_own = hooks is not None and hooks.find("create_optimizer") is not None
    handed, schedules = _handed_optimizers(given)
    optimizers = handed or ([] if is_own else _default_optimizer(given, model, loop.site))

    callbacks = _listed_callbacks(m, given.get("callbacks"), scope)
    named = {"model": model, **({"optimizer": optimizers[0]} if optimizers else {})}

    def step(batch: Value) -> BlockEnd:
        _mode(m, model, training=True)
        for callback in callbacks:
            callback.call_by_name("on_step_begin", named)
        loss = None if hooks is None else hooks.call("compute_loss", model, batch)
        if loss is None:
            spread = Result("operator.spread", args=(batch,))
            loss = names.part(calls.call(m, model, (spread,), {}, node, scope), "loss")
        _learn(m, loop.site, loss, optimizers, given.get("args"))
        for schedule in schedules:
            m.record(EventForm.CALL, loop.site, ".step", schedule, (), {}, node).by_framework = True
        for callback in callbacks:
            callback.call_by_name("on_step_end", named)
        return BlockEnd.NEXT

    for callback in callbacks:
        callback.call_by_name("on_train_begin", named)
    iteration.run_over(m, loop, data, step, scope)
    _evaluate_transformers(m, given, model, node, scope)


def _handed_optimizers(given: Mapping[str, Value]) -> tuple[list[Value], list[Value]]:
    """Return the optimizer and the schedule of `optimizers=(optimizer, schedule)`."""
    pair = given.get("optimizers")
    found = [] if pair is None else iteration.members(pair) or []
    known = [[] if is_none(value) else [value] for value in found]
    return (known[0], known[1]) if len(known) == 2 else ([], [])


# the names that Transformers gives to optimizers of torch
NAMED: dict[object, str] = {"adamw_torch": "AdamW", "adamw_torch_fused": "AdamW", "sgd": "SGD",
                            "adagrad": "Adagrad", "rmsprop": "RMSprop"}  # fmt: skip


def _default_optimizer(given: Mapping[str, Value], model: Value, site: Site) -> list[Value]:
    """Return what Transformers makes over the model: AdamW where it is not told otherwise."""
    args = given.get("args")
    is_plain = isinstance(args, Result) and not {"**", "args", "optim_args"} & set(args.kwargs)
    if "optimizers" in given or not is_plain or not isinstance(args, Result):
        return []
    kind = NAMED.get(constant(args.kwargs["optim"]), "") if "optim" in args.kwargs else "AdamW"
    if not kind:
        return []
    settings = {"lr": args.kwargs.get("learning_rate") or Known(5e-5)}
    if "weight_decay" in args.kwargs:
        settings["weight_decay"] = args.kwargs["weight_decay"]
    held = Result(".parameters", model, site=site)
    made = args.site if args.site is not None else site
    return [Result(f"torch.optim.{kind}", None, (held,), settings, site=made)]


def _constructed(trainer: Value) -> dict[str, Value]:
    """Return the arguments that a trainer was made with."""
    if isinstance(trainer, Instance):
        made = trainer.fields.get("new by name")
        found = {str(k): v for k, v in made.fields.items()} if made is not None else {}
        for key in ("model", "args", "train_dataset", "eval_dataset", "compute_metrics"):
            if key in trainer.fields:
                found.setdefault(key, trainer.fields[key])
        return found
    if isinstance(trainer, Result):
        order = ("model", "args", "data_collator", "train_dataset", "eval_dataset")
        return {**dict(zip(order, trainer.args, strict=False)), **trainer.kwargs}
    return {}


def _evaluate_transformers(
    m: Machine, given: Mapping[str, Value], model: Value, node: ast.AST, scope: Scope
) -> None:
    _mode(m, model, training=False)
    metrics = given.get("compute_metrics")
    with m.switched(Answer.NO):
        if isinstance(metrics, FunctionValue):
            calls.call(m, metrics, (Unknown(name="eval_prediction"),), {}, node, scope)
    _mode(m, model, training=True)


def run_callback(
    m: Machine, function: Value, args: Sequence[Value], node: ast.AST, scope: Scope
) -> None:
    """Run a function that is given to something out of sight, which calls it some time."""
    from traindx.analysis.program.execution.events import Guard

    def run() -> BlockEnd:
        first = len(m.events)
        calls.call(m, function, args, {}, node, scope)
        for event in m.events[first : first + 1]:
            event.is_called_back = event.is_own
        return BlockEnd.NEXT

    guard = Guard(None, Site(scope.module, node), True)
    sides: list[tuple[Guard | None, Callable[[], BlockEnd]]] = [
        (guard, run),
        (None, lambda: BlockEnd.NEXT),
    ]
    m.explore(sides)


CONTEXT = "torch.autograd.function.FunctionCtx"


def apply_function(
    m: Machine, cls: ClassValue, args: Sequence[Value], node: ast.AST, scope: Scope
) -> None:
    """Run both directions of an operation with a gradient of its own, as autograd does."""
    found = {
        n: names.find_method(m, cls, n, None) for n in ("forward", "setup_context", "backward")
    }
    forward, setup, backward = found.values()
    if forward is None or backward is None:
        return
    context = Result(CONTEXT, None, (cls,), site=Site(scope.module, node))
    first = () if setup is not None else (context,)
    output = calls.call(m, forward, (*first, *args), {}, node, scope)
    if setup is not None:
        calls.call(m, setup, (context, iteration.items_of(list(args)), output), {}, node, scope)
    calls.call(m, backward, (context, Unknown(name="grad")), {}, node, scope)
