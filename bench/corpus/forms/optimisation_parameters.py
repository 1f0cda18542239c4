"""Other forms of parameters that no update reaches, and of graphs that are cut."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from bench.corpus.anatomy import (
    building,
    forwards,
    modules,
    optimizers,
)
from bench.corpus.operators import optimisation_updates as first
from bench.corpus.sites import (
    behind_losses,
    behind_optimizers,
    complete_models,
    sole_outputs,
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
            "    p.requires_grad = place >= int(<s> * len(everything))",
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
