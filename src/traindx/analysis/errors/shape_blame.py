"""From an error message to the layer at fault: which trace explains the sizes that it names."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass
from math import prod

from traindx.analysis.errors.culprits import Culprit, module_at
from traindx.analysis.program.patches import diff, replacing
from traindx.analysis.program.project import Project
from traindx.analysis.program.shapes.accounts import factorings
from traindx.analysis.program.shapes.forward_traces import ForwardTrace, trace
from traindx.analysis.program.shapes.machine import Conflict, ShapeStep
from traindx.analysis.program.shapes.sizes import Dim, Size, is_dim
from traindx.analysis.program.shapes.uses import TracedUse, Use, follow, model_classes
from traindx.analysis.program.shapes.values import Layer, Shape
from traindx.analysis.program.syntax import Module, argument
from traindx.model.run import Failure
from traindx.tracebacks import own_frames

# sizes of images people train on; tried first, since several sizes may explain one number
USUAL_SIDES = (32, 28, 224, 64, 128, 256, 96, 48, 112, 160, 299, 384, 512, 227, 84, 100, 150, 200)
OTHER_SIDES = tuple(n for n in range(4, 321) if n not in USUAL_SIDES)
SMALL = 80  # operations; a larger network is tried with the usual sizes only, to stay quick
MOST_SOLVED = 6  # classes

# the argument of each layer that says what it takes
INPUT_OPTION = {
    "Linear": ("in_features", 0),
    "Conv1d": ("in_channels", 0),
    "Conv2d": ("in_channels", 0),
    "Conv3d": ("in_channels", 0),
    "ConvTranspose1d": ("in_channels", 0),
    "ConvTranspose2d": ("in_channels", 0),
    "ConvTranspose3d": ("in_channels", 0),
    "BatchNorm1d": ("num_features", 0),
    "BatchNorm2d": ("num_features", 0),
    "BatchNorm3d": ("num_features", 0),
    "InstanceNorm2d": ("num_features", 0),
    "GroupNorm": ("num_channels", 1),
    "LayerNorm": ("normalized_shape", 0),
    "LSTM": ("input_size", 0),
    "GRU": ("input_size", 0),
    "RNN": ("input_size", 0),
}
Fits = Callable[[Conflict], bool]


@dataclass(frozen=True, slots=True)
class Blame:
    """A conflict that the source shows, the trace that led to it, and the input assumed for it."""

    conflict: Conflict
    trace: ForwardTrace
    module: Module
    input: Shape | None = None
    origin: str = ""

    @property
    def layer(self) -> Layer | None:
        return self.conflict.layer

    @property
    def name(self) -> str:
        """How the user calls the layer; for the middle of a sentence."""
        return self.conflict.attribute or self.conflict.operation


def title_of(blame: Blame) -> str:
    """Return the layer's name for the head of a sentence."""
    return f"Layer {blame.name}"


def find_blame(project: Project, failure: Failure, fits: Fits) -> Blame | None:
    """Return the conflict in the source that explains a failure, if there is one."""
    found = find_trace(
        project, failure, lambda trace: trace.conflict is not None and fits(trace.conflict)
    )
    if found is None or found.trace.conflict is None:
        return None
    shape = next((s for s in found.use.inputs if s is not None), None)
    return Blame(found.trace.conflict, found.trace, found.module, shape, found.use.origin)


def find_trace(
    project: Project,
    failure: Failure,
    fits: Callable[[ForwardTrace], bool],
    batch: int | None = None,
) -> TracedUse | None:
    """Return the first trace that explains a failure, of inputs in the source or of usual ones."""
    suspects = _suspects(project, failure)
    for module, cls in suspects:
        for followed in follow(project, module, cls):
            if fits(followed.trace):
                return followed
    for module, cls in suspects[:MOST_SOLVED]:
        solved = _solved(project, module, cls, fits, batch)
        if solved is not None:
            return solved
    return None


def _suspects(project: Project, failure: Failure) -> list[tuple[Module, ast.ClassDef]]:
    """The model classes that the traceback passes through, outermost first; else all of them."""
    found: list[tuple[Module, ast.ClassDef]] = []
    for frame in own_frames(failure):
        module = module_at(project, frame.file)
        for cls in () if module is None else module.classes.values():
            inside = cls.lineno <= frame.line <= (cls.end_lineno or cls.lineno)
            if module is not None and inside and project.is_module(module, cls):
                found.append((module, cls))
    return found or list(model_classes(project))


def _solved(
    project: Project,
    module: Module,
    cls: ast.ClassDef,
    fits: Callable[[ForwardTrace], bool],
    batch: int | None,
) -> TracedUse | None:
    """Find the size of the images for which the error arises as it was reported."""
    first = next(iter(follow(project, module, cls)))
    shape = _assumed(first) if batch is None or not first.use.has_inputs else first.use.inputs[0]
    is_settled = first.trace.conflict is not None and batch is None
    if shape is None or is_settled or len(shape.sizes) not in (3, 4, 5):
        return None
    lead = shape.sizes[:2] if batch is None else (batch, shape.sizes[1])
    is_open = any(isinstance(s, Size) for s in shape.sizes[2:])
    others = OTHER_SIDES if len(first.trace.steps) <= SMALL else ()
    for side in (*USUAL_SIDES, *others) if is_open else (0,):
        tried = Shape((*lead, *(side if isinstance(s, Size) else s for s in shape.sizes[2:])))
        traced = trace(project, module, cls, [tried], first.use.built_by)
        if fits(traced):
            text = f"inputs of {'×'.join(map(str, tried.sizes[1:]))} give the size in the message"
            return TracedUse(module, cls, Use(first.use.built_by, (tried,), text), traced)
    return None


def _assumed(followed: TracedUse) -> Shape | None:
    """Return the shape that the first layer asks for, where the source feeds nothing known."""
    found = list(followed.trace.assumed.values())
    return found[0] if len(found) == 1 and not followed.use.has_inputs else None


def culprit_of(blame: Blame, says: str, *, is_repairable: bool = True) -> Culprit | None:
    """Return the line on which the layer was built, with the patch that builds it to fit."""
    layer = blame.layer
    if layer is None:
        return None
    patch = resized(layer, blame.conflict.got) if is_repairable else None
    return Culprit(layer.module, layer.node, says, patch)


def resized(layer: Layer, size: Dim | object) -> str | None:
    """Return the patch that builds a layer for another input size, where a number stands there."""
    option = INPUT_OPTION.get(layer.kind)
    if option is None or not is_dim(size) or not isinstance(size, int):
        return None
    node = argument(layer.node, *option)
    if node is None or not _is_number(node) or _is_shared(layer):
        return None
    return diff(layer.module, replacing(node, str(size)))


def _is_number(node: ast.expr) -> bool:
    """Tell whether an expression is made of numbers alone: `64`, `16 * 5 * 5`."""
    parts = (ast.Constant, ast.BinOp, ast.operator, ast.UnaryOp, ast.unaryop)
    return all(isinstance(n, parts) for n in ast.walk(node))


def _is_shared(layer: Layer) -> bool:
    """Tell whether one call builds several layers: in a loop or in a helper."""
    loops = (ast.For, ast.While, ast.ListComp, ast.GeneratorExp, ast.DictComp)
    for node in layer.module.enclosing(layer.node):
        if isinstance(node, loops):
            return True
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            return isinstance(node, ast.FunctionDef) and node.name != "__init__"
    return False


def expression_of(layer: Layer, size: object) -> str:
    """Return the layer's call as it should read, such as `nn.Linear(57600, 128)`."""
    option = INPUT_OPTION.get(layer.kind)
    node = None if option is None else argument(layer.node, *option)
    text = ast.unparse(layer.node)
    if node is None:
        return text
    copy = ast.parse(text, mode="eval").body
    target = argument(copy, *option) if isinstance(copy, ast.Call) and option else None
    if target is None:
        return text
    return text[: target.col_offset] + str(size) + text[target.end_col_offset :]


def mixed_batch(project: Project, failure: Failure, expected: int, got: int) -> Culprit | None:
    """Return the line at which samples and features were mixed up."""

    def mixing(trace: ForwardTrace) -> ShapeStep | None:
        """The step that turns a batch of the right size into one of the size in the message."""
        for step in trace.steps:
            if step.operation in ("view", "reshape", "flatten") and step.before and step.after:
                first, last = step.before[0].sizes[:1], step.after[0].sizes[:1]
                if first == (expected,) and last == (got,):
                    return step
        return None

    followed = find_trace(project, failure, lambda t: mixing(t) is not None, batch=expected)
    step = None if followed is None else mixing(followed.trace)
    module = next((m for m in project.modules if step and m.path == step.file), None)
    if step is None or module is None:
        return None
    before, after = step.before[0], step.after[0]
    count = prod(s for s in before.sizes[1:] if isinstance(s, int))
    says = (
        f"this turns {before} into {after}: each sample has "
        f"{'·'.join(str(s) for s in before.sizes[1:])} = {count} features, and the "
        f"{step.operation} keeps {after.sizes[-1]} of them per row"
    )
    node = next((n for n in ast.walk(module.tree)
                 if isinstance(n, ast.stmt) and n.lineno == step.line), None)  # fmt: skip
    return None if node is None else Culprit(module, node, says)


def built_for(blame: Blame, wanted: int, got: int, *, is_layout: bool) -> str:
    """Say for how many channels a layer is built, and how it should read."""
    text = f"{blame.name} is built here for {wanted} channels"
    if is_layout or blame.layer is None:
        return text
    return f"{text}; for its input it should read {expression_of(blame.layer, got)}"


def size_factors(got: int, wanted: int) -> str:
    """How the size may be made up, with the layer's own size as the likeliest channel count."""
    likely = factorings(got, (wanted,)) if wanted > 1 else []
    ways = list(dict.fromkeys([*likely, *factorings(got)]))[:3]
    if ways:
        return f"{got} = {' = '.join(ways)} (channels × height × width): a flattened image"
    if wanted > 1 and got % wanted == 0:
        return f"{got} = {wanted}×{got // wanted}: a dimension of {got // wanted} was flattened in"
    return ""
