"""Other forms of faults in the four calls of a training step, and in what they act on."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from bench.corpus.anatomy import (
    building,
    clearings,
    clips,
    forwards,
    loop_steps,
    modules,
    nearest_step,
    optimizers,
    updates,
)
from bench.corpus.operators import optimisation_updates as first
from bench.corpus.sites import (
    behind_losses,
    behind_optimizers,
    complete_models,
    sole_outputs,
    step_words,
    without_effect,
)
from bench.corpus.source import Source
from bench.corpus.syntax import dotted, targets
from bench.corpus.writing import (
    Side,
    Site,
    Sites,
    accepting,
    ahead,
    called,
    forms,
    function,
    inline,
    lines,
)

# Steps


def _stepped(source: Source) -> Iterator[ast.stmt]:
    for statement, _ in updates(source):
        if nearest_step(source, statement, is_ahead=True) is not None:
            yield statement


def _cleared(source: Source) -> Iterator[ast.stmt]:
    for statement, _ in clearings(source):
        if nearest_step(source, statement, is_ahead=False) is not None:
            yield statement


def _step_sites(source: Source) -> Iterator[Site]:
    for statement, owner in updates(source):
        step = nearest_step(source, statement, is_ahead=True)
        if step is not None and "." not in step.loss:
            words = {"loss": step.loss, "optimizer": owner, "call": source.code(statement)}
            yield Site(anchor=statement, side=Side.INSTEAD, words=words)


SPARE = "torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.1)"
without_effect(
    first.step_taken_away,
    _stepped,
    "UPDATE_WEIGHTS",
    known={
        "on-another-optimizer": lines(
            "spare_optimizer.step()", top=(f"spare_optimizer = {SPARE}",), is_fault_here=True
        )
    },
    new={
        "on-a-copy": accepting(
            lines("copy.deepcopy(<owner>).step()"), "parameters-not-in-optimizer"
        )
    },
)
forms(
    first.nan_guard_inverted,
    _step_sites,
    known={
        "isnan-for-not-isnan": lines("if torch.isnan(<loss>):", "    <call>"),
        "compared-with-itself": lines("if <loss>.item() != <loss>.item():", "    <call>"),
    },
    new={
        "guard-in-a-function": lines(
            "if is_fine(<loss>):",
            "    <call>",
            top=("def is_fine(value):", "    return not math.isfinite(value.item())"),
        ),
        "skips-what-is-finite": lines(
            "if torch.isfinite(<loss>):", "    pass", "else:", "    <call>"
        ),
    },
)
without_effect(
    first.zero_grad_taken_away,
    _cleared,
    "CLEAR_GRADIENTS",
    known={
        "on-another-optimizer": lines(
            "spare_optimizer.zero_grad()", top=(f"spare_optimizer = {SPARE}",), is_fault_here=True
        )
    },
    new={"on-a-copy": lines("copy.deepcopy(<owner>).zero_grad()")},
)


def _cleared_once(source: Source) -> Iterator[Site]:
    for statement in _cleared(source):
        loop = source.around(statement, ast.For)
        if isinstance(loop, ast.For) and statement in loop.body:
            start = source.before(loop, "is_first_batch = True")
            words = {"call": source.code(statement)}
            yield Site(anchor=statement, side=Side.INSTEAD, words=words, along=(start,))


forms(
    first.zero_grad_moved_out_of_loop,
    _cleared_once,
    known={
        "first-batch-only": lines("if is_first_batch:", "    <call>", "    is_first_batch = False")
    },
    new={
        "flag-turned-off": lines(
            "is_first_batch, is_due = False, is_first_batch", "if is_due:", "    <call>"
        ),
        "one-call-kept-in-a-function": lines(
            "is_first_batch = once(is_first_batch, lambda: <call>)",
            top=(
                "def once(is_due, action):",
                "    if is_due:",
                "        action()",
                "    return False",
            ),
            is_fault_here=True,
        ),
    },
)
without_effect(
    first.backward_taken_away,
    lambda source: [s.backward for s in loop_steps(source) if s.made is not None],
    "PROPAGATE",
)


def _moved_behind_backward(source: Source) -> Iterator[Site]:
    for step in loop_steps(source):
        for statement, owner in clearings(source):
            behind = step.block[step.block.index(step.backward) :]
            after = [s for s, name in updates(source) if s in behind and name == owner]
            mine = nearest_step(source, after[0], is_ahead=True) if after else None
            if statement in step.earlier and mine is not None and mine.backward is step.backward:
                words = {**step_words(source, step.backward), "clear": source.code(statement)}
                words["optimizer"] = owner
                along = (source.drop(statement),)
                yield Site(anchor=step.backward, side=Side.AFTER, words=words, along=along)


GROUPS = "for group in <optimizer>.param_groups:"
forms(
    first.zero_grad_after_backward,
    _moved_behind_backward,
    known={
        "model-cleared": lines("<model>.zero_grad()"),
        "gradients-set-to-none": lines("for p in <model>.parameters():", "    p.grad = None"),
    },
    new={
        "groups-cleared-one-by-one": lines(
            GROUPS,
            '    for p in group["params"]:',
            "        if p.grad is not None:",
            "            p.grad.zero_()",
        ),
        "cleared-in-a-function": called("clean_up", "<optimizer>", "<optimizer>.zero_grad()"),
    },
)


# Accumulation


def _accumulating(start: str, *, is_clear_kept: bool) -> Sites:
    """Return the sites of a step that is taken every few batches, or of a rarer clearing."""

    def sites(source: Source) -> Iterator[Site]:
        for step in loop_steps(source):
            found = [(s, o) for s, o in updates(source) if s in step.block]
            clear = [s for s, _ in clearings(source) if s in step.block]
            loop = source.around(step.backward, ast.For)
            if len(found) != 1 or len(clear) != 1 or not isinstance(loop, ast.For):
                continue
            if loop.body is not step.block or len(loop_steps(source)) != 1:
                continue
            counted = source.before(loop, start)
            words = {"clear": source.code(clear[0]), "step": source.code(found[0][0])}
            if is_clear_kept:
                yield Site(anchor=clear[0], side=Side.INSTEAD, words=words, along=(counted,))
            else:
                along = (counted, source.drop(clear[0]))
                yield Site((), found[0][0], Side.INSTEAD, words, along, step.backward)

    return sites


COUNTER = (
    "class Counter:",
    "    seen = 0",
    "",
    "    def is_due(self):",
    "        self.seen += 1",
    "        return self.seen % <s> == 0",
)
forms(
    first.accumulation_without_division,
    _accumulating("pending = 0", is_clear_kept=False),
    known={
        "counter-set-back": lines(
            "pending += 1", "if pending == <s>:", "    <step>", "    <clear>", "    pending = 0"
        )
    },
)
forms(
    first.accumulation_without_division,
    _accumulating("pending = []", is_clear_kept=False),
    new={
        "batches-collected": lines(
            "pending.append(1)",
            "if len(pending) < <s>:",
            "    continue",
            "<step>",
            "<clear>",
            "pending = []",
        ),
        "counted-by-a-class": lines(
            "pending = pending or [Counter()]",
            "if pending[0].is_due():",
            "    <step>",
            "    <clear>",
            top=COUNTER,
        ),
    },
)
forms(
    first.accumulation_stepped_every_time,
    _accumulating("pending = 0", is_clear_kept=True),
    known={
        "counter-set-back": lines(
            "if pending in (0, <s>):", "    <clear>", "    pending = 0", "pending += 1"
        )
    },
)
forms(
    first.accumulation_stepped_every_time,
    _accumulating("pending = []", is_clear_kept=True),
    new={
        "counted-by-a-class": lines(
            "pending = pending or [Counter()]",
            "if pending[0].is_due():",
            "    <clear>",
            top=COUNTER,
            is_fault_here=True,
        )
    },
)


# Clipping


def _clips_behind_step(source: Source) -> Iterator[Site]:
    for statement, call in clips(source):
        for stepped, _ in updates(source):
            if stepped in source.siblings(statement) and isinstance(statement, ast.Expr):
                words = {"clip": source.code(statement), "what": source.code(call.args[0])}
                along = (source.drop(statement),)
                yield Site(anchor=stepped, side=Side.AFTER, words=words, along=along)


forms(
    first.clip_moved_after_step,
    _clips_behind_step,
    known={
        "by-value": lines("torch.nn.utils.clip_grad_value_(<what>, 1.0)"),
        "behind-a-true-condition": lines("if torch.is_grad_enabled():", "    <clip>"),
    },
    new={
        "by-hand": lines(
            "for p in <what>:", "    if p.grad is not None:", "        p.grad.clamp_(-1.0, 1.0)"
        ),
        "in-a-function": lines(
            "tidy_gradients(lambda: <clip>)",
            top=("def tidy_gradients(clip):", "    clip()"),
            is_fault_here=True,
        ),
    },
)


# What the optimizer holds


def _rebuilt(source: Source) -> Iterator[Site]:
    for site in behind_optimizers(source):
        model = site.words["model"]
        made = building(source, model) if model else None
        if made is None or site.anchor is None:
            continue
        if source.scope(made) is source.scope(site.anchor) and "\n" not in source.code(made):
            words = {**site.words, "made": source.code(made.value)}
            yield Site(anchor=site.anchor, side=Side.AFTER, words=words)


forms(
    first.model_made_again,
    _rebuilt,
    known={
        "copied": lines("<model> = copy.deepcopy(<model>)"),
        "made-again-and-loaded": lines(
            "fresh = <made>", "fresh.load_state_dict(<model>.state_dict())", "<model> = fresh"
        ),
    },
    new={
        "parameters-replaced": lines(
            "for module in <model>.modules():",
            "    for name, p in list(module.named_parameters(recurse=False)):",
            "        setattr(module, name, nn.Parameter(p.detach().clone()))",
        ),
        "state-assigned": lines(
            "weights = {k: v.clone() for k, v in <model>.state_dict().items()}",
            "<model>.load_state_dict(weights, assign=True)",
        ),
    },
)


def _held(source: Source) -> Iterator[Site]:
    for optimizer in optimizers(source):
        if optimizer.model and "." not in optimizer.model:
            yield Site((optimizer.parameters,), words={"model": optimizer.model})


forms(
    first.last_layer_only,
    _held,
    known={
        "last-of-named": inline("[p for _, p in list(<model>.named_parameters())[-1:]]"),
        "biases-only": inline("[p for p in <model>.parameters() if p.dim() == 1]"),
    },
    new={
        "chosen-in-a-function": inline(
            "trainable(<model>)", "def trainable(module):", "    return [*module.parameters()][-1:]"
        ),
        "list-overwritten-in-a-loop": ahead(
            "last_found(<model>)",
            "def last_found(module):",
            "    found = []",
            "    for p in module.parameters():",
            "        found = [p]",
            "    return found",
            name="to_train",
        ),
    },
)


def _sums_of_parameters(source: Source) -> Iterator[Site]:
    for node in source.nodes:
        if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Add):
            continue
        if all("parameters()" in source.code(s) for s in (node.left, node.right)):
            yield Site((node,), words={"kept": source.code(node.right)})


forms(
    first.one_of_two_models_forgotten,
    _sums_of_parameters,
    known={"list-of-one": inline("[*<kept>]")},
    new={
        "first-overwritten": ahead("<kept>", name="to_train"),
        "group-of-one": inline('[{"params": <kept>}]'),
    },
)

# Frozen weights

COUNT = "int(<s> * len(list(<model>.parameters())))"
forms(
    first.weights_frozen,
    complete_models,
    known={
        "counted-by-name": lines(
            "for place, (name, p) in enumerate(<model>.named_parameters()):",
            f"    if place < {COUNT}:",
            "        p.requires_grad_(False)",
        ),
        "in-a-function": lines(
            f"freeze(<model>, {COUNT})",
            top=(
                "def freeze(module, count):",
                "    for p in list(module.parameters())[:count]:",
                "        p.requires_grad = False",
            ),
            is_fault_here=True,
        ),
    },
    new={
        "set-to-trainable-by-condition": lines(
            "everything = list(<model>.parameters())",
            "for place, p in enumerate(everything):",
            "    p.requires_grad = place >= <s> * len(everything) - 1e-9",
        ),
        "in-a-comprehension": lines(
            f"_ = [p.requires_grad_(False) for p in list(<model>.parameters())[:{COUNT}]]"
        ),
    },
)
forms(
    first.everything_frozen,
    complete_models,
    known={
        "in-a-loop": lines("for p in <model>.parameters():", "    p.requires_grad = False"),
        "module-by-module": lines(
            "for module in <model>.modules():", "    module.requires_grad_(False)"
        ),
    },
    new={
        "in-a-function": called(
            "freeze", "<model>", "for p in <model>.parameters():", "    p.requires_grad = False"
        ),
        "applied": lines("<model>.apply(lambda module: module.requires_grad_(False))"),
    },
)

# Graphs that are cut

forms(
    first.loss_wrapped_anew,
    behind_losses,
    known={
        "detached-and-asked-for-gradients": lines("<loss> = <loss>.detach().requires_grad_()"),
        "through-a-float": lines("<loss> = torch.tensor(float(<loss>), requires_grad=True)"),
    },
    new={
        "variable-of-data": lines(
            "<loss> = torch.autograd.Variable(<loss>.data, requires_grad=True)"
        ),
        "as-parameter": lines("<loss> = nn.Parameter(<loss>.data)"),
    },
)
forms(
    first.output_detached,
    sole_outputs,
    known={"data": inline("<x>.data"), "a-line-ahead": ahead("<x>.detach()", name="raw_output")},
    new={
        "clone-of-detached": function("x.detach().clone()", "to_output"),
        "in-a-function-without-gradients": inline(
            "to_output(lambda: <x>)",
            "@torch.no_grad()",
            "def to_output(compute):",
            "    return compute()",
        ),
    },
)


def _hidden_features(source: Source) -> Iterator[Site]:
    for forward in forwards(source):
        made = [s for s in forward.body if isinstance(s, ast.Assign)]
        for statement in made[:-1]:
            if isinstance(statement.value, ast.Call) and len(targets(statement)) == 1:
                words = {"statement": source.code(statement)}
                anchor = statement if "\n" not in words["statement"] else None
                yield Site((statement.value,), anchor, Side.INSTEAD, words)


forms(
    first.features_detached,
    _hidden_features,
    known={
        "data": inline("<x>.data"),
        "computed-without-gradients": accepting(
            lines("with torch.no_grad():", "    <statement>"),
            "frozen-parameters",
            "no-grad-training",
        ),
    },
    new={
        "through-a-function": function("x.clone().detach()", "to_features"),
        "gradients-turned-off-around-it": accepting(
            lines(
                "torch.set_grad_enabled(False)",
                "<statement>",
                "torch.set_grad_enabled(self.training)",
            ),
            "frozen-parameters",
            "no-grad-training",
        ),
    },
)


def _named_outputs(source: Source) -> Iterator[Site]:
    for site in sole_outputs(source):
        parent = source.parents[site.nodes[0]]
        if isinstance(parent, ast.Assign):
            words = {"out": dotted(targets(parent)[0])}
            yield Site(anchor=parent, side=Side.AFTER, words=words)


forms(
    first.output_through_numpy,
    _named_outputs,
    known={
        "through-a-list": lines("<out> = torch.tensor(<out>.tolist(), requires_grad=True)"),
    },
    new={
        "in-a-function": lines(
            "<out> = as_float32(<out>)",
            top=(
                "def as_float32(values):",
                '    array = values.detach().numpy().astype("float32")',
                "    return torch.tensor(array, requires_grad=True)",
            ),
        ),
        "as-numpy-array": lines(
            "<out> = torch.as_tensor(np.asarray(<out>.detach())).requires_grad_(True)"
        ),
    },
)

# Layers that the module does not know


def _module_lists(source: Source) -> Iterator[Site]:
    for node in source.calls():
        if dotted(node.func) == "nn.ModuleList" and node.args:
            yield Site((node,), words={"held": source.code(node.args[0])})


forms(
    first.module_list_made_plain,
    _module_lists,
    known={"tuple": inline("tuple(<held>)"), "list-of-the-list": inline("list(<x>)")},
    new={
        "in-a-function": inline(
            "stacked(<held>)", "def stacked(layers):", "    return [layer for layer in layers]"
        ),
        "unpacked": inline("[*nn.ModuleList(<held>)]"),
    },
)


def _hidden_layer(before: str, after: str, use: str) -> Sites:
    """Return the sites of layers that are kept in something a module does not look into."""

    def sites(source: Source) -> Iterator[Site]:
        for klass in modules(source):
            for statement, told in _single_layers(source, klass)[:2]:
                uses = [
                    n
                    for n in ast.walk(klass)
                    if isinstance(n, ast.Attribute)
                    and dotted(n) == told
                    and n is not statement.targets[0]
                ]
                if uses and all(isinstance(source.parents[n], ast.Call) for n in uses):
                    along = tuple(source.wrap(u, "", use) for u in uses)
                    words = {"hidden": f"{before}{source.code(statement.value)}{after}"}
                    yield Site((statement.value,), words=words, along=along)

    return sites


def _single_layers(source: Source, klass: ast.ClassDef) -> list[tuple[ast.Assign, str]]:
    return [
        (n, dotted(n.targets[0]))
        for n in ast.walk(klass)
        if isinstance(n, ast.Assign)
        and isinstance(n.targets[0], ast.Attribute)
        and isinstance(n.value, ast.Call)
        and dotted(n.value.func) in ("nn.Linear", "nn.Conv2d", "nn.Sequential")
    ]


forms(
    first.layer_hidden_in_list,
    _hidden_layer("(", ",)", "[0]"),
    known={"in-a-tuple": inline("<hidden>")},
)
forms(
    first.layer_hidden_in_list,
    _hidden_layer('{"layer": ', "}", '["layer"]'),
    known={"in-a-table": inline("<hidden>")},
)
HOLDER = ("class Holder:", "    def __init__(self, layer):", "        self.layer = layer")
forms(
    first.layer_hidden_in_list,
    _hidden_layer("Holder(", ")", ".layer"),
    new={"in-a-plain-object": inline("<hidden>", *HOLDER)},
)
