"""The calls that a failing statement, or a whole program, makes, and the changes that repair them.

What a failure needs of the source is mostly small: which call on the failing line is meant, how it
is written, and the same line with one word changed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from traindx.analysis.errors.culprits import Culprit, site_of
from traindx.analysis.errors.failing_lines import failing_code, loss_called_as_function
from traindx.analysis.errors.messages import KnownError
from traindx.analysis.program.patches import Edit, diff, replacing
from traindx.analysis.program.project import project_of
from traindx.analysis.program.syntax import Module, argument, literal
from traindx.analysis.program.written_kinds import LOSS_CLASSES
from traindx.model.run import Failure, Run

TURNED = (".transpose(", ".permute(", ".t()", ".T", ".mT")


@dataclass(frozen=True, eq=False)
class WrittenCall:
    """A call in the source: what is called, on what, with which arguments."""

    module: Module
    node: ast.Call
    name: str  # dotted, through imports; empty where what is called has no name

    @property
    def method(self) -> str:
        """The last part of what is called."""
        func = self.node.func
        return func.attr if isinstance(func, ast.Attribute) else self.name.rsplit(".", 1)[-1]

    @property
    def owner(self) -> str:
        """What the method is called on, as it is written; empty for a plain name."""
        func = self.node.func
        return self.module.source(func.value) if isinstance(func, ast.Attribute) else ""

    @property
    def text(self) -> str:
        return ast.unparse(self.node)

    @property
    def arguments(self) -> list[str]:
        """The positional arguments as they are written."""
        return [self.module.source(a) for a in self.node.args]

    @property
    def target(self) -> str:
        """The name that the result is given; empty where it is given none."""
        above = self.module.parents.get(self.node)
        return ast.unparse(above.targets[0]) if isinstance(above, ast.Assign) else ""

    @property
    def next_method(self) -> str:
        """The method or attribute that is asked of the result at once."""
        above = self.module.parents.get(self.node)
        return above.attr if isinstance(above, ast.Attribute) else ""

    def has(self, name: str, position: int | None = None) -> bool:
        return argument(self.node, name, position) is not None

    def values(self) -> list[object]:
        """The arguments that are literals."""
        given = [*self.node.args, *(k.value for k in self.node.keywords)]
        return [literal(a) for a in given]

    def option(self, name: str) -> object:
        """The literal that is given as a keyword argument."""
        return literal(argument(self.node, name))

    def blamed(self, says: str, patch: str | None = None, *, as_a_whole: bool = False) -> Culprit:
        """Return the call, or the statement around it, as what is at fault."""
        node = self.module.statement_of(self.node) if as_a_whole else None
        return Culprit(self.module, node or self.node, says, patch)

    def with_owner(self, text: str) -> str | None:
        """Return the patch that calls the method on something else."""
        func = self.node.func
        if not isinstance(func, ast.Attribute):
            return None
        return diff(self.module, replacing(func.value, text))

    def with_method(self, name: str) -> str | None:
        """Return the patch that calls another method."""
        line, end = self._end_of(self.node.func)
        return diff(self.module, Edit(line, end - len(self.method), line, end, name))

    def with_first_argument(self, text: str) -> str | None:
        return diff(self.module, replacing(self.node.args[0], text)) if self.node.args else None

    def with_another_argument(self, text: str) -> str | None:
        """Return the patch that adds an argument behind the others."""
        line, end = self._end_of(self.node)
        return diff(self.module, Edit(line, end - 1, line, end - 1, f", {text}"))

    def followed_by(self, text: str) -> str | None:
        """Return the patch that writes something behind the call."""
        line, end = self._end_of(self.node)
        return diff(self.module, Edit(line, end, line, end, text))

    def made_first(self) -> str | None:
        """Return the patch that makes the object and calls it with the arguments."""
        line, end = self._end_of(self.node.func)
        return diff(self.module, Edit(line, end, line, end, "()"))

    def _end_of(self, node: ast.expr) -> tuple[int, int]:
        return node.end_lineno or node.lineno, node.end_col_offset or 0


def failing_calls(run: Run, failure: Failure, *methods: str) -> list[WrittenCall]:
    """Return the calls of such methods in the statement that failed."""
    site = site_of(run, failure)
    if site is None:
        return []
    found = (WrittenCall(site.module, c, name) for c, name in site.module.calls(site.node))
    return [c for c in found if not methods or c.method in methods]


def program_calls(run: Run, module: Module | None = None) -> Iterator[WrittenCall]:
    """Yield every call of the program, or of one file."""
    for each in [module] if module is not None else project_of(run).modules:
        for call, name in each.calls():
            yield WrittenCall(each, call, name)


def only(culprits: list[Culprit]) -> Culprit | None:
    """Return a culprit that is the only one of its kind."""
    return culprits[0] if len(culprits) == 1 else None


def unreduced_loss(run: Run, failure: Failure) -> Culprit | None:
    """Return the backward call on several values, and the loss that was not reduced."""
    site = site_of(run, failure)
    calls = program_calls(run, site.module if site is not None else None)
    kept = [c for c in calls if c.option("reduction") == "none" or c.option("reduce") is False]
    reason = f"{kept[0].text} returns one value per example" if kept else ""
    for call in failing_calls(run, failure, "backward"):
        if not call.arguments and call.owner:
            says = f"{call.owner} is not reduced{f'; {reason}' if reason else ''}"
            return call.blamed(says, call.with_owner(f"{call.owner}.mean()"), as_a_whole=True)
    return kept[0].blamed(reason) if kept else None


def unpicklable_lambda(run: Run) -> Culprit | None:
    """Return the lambda that a loader with workers would have to send."""
    for module in project_of(run).modules:
        for call in program_calls(run, module):
            if call.method != "DataLoader":
                continue
            for option in ("collate_fn", "worker_init_fn", "batch_sampler"):
                given = argument(call.node, option)
                if isinstance(given, ast.Lambda):
                    return Culprit(module, given, f"{option} is a lambda, which has no name")
        for node in module.nodes(ast.Lambda):
            return Culprit(module, node, "a lambda has no name to be found by")
    return None


def float64_from_numpy(run: Run, failure: Failure) -> Culprit | None:
    """Return the one place at which float64 from numpy becomes a tensor."""
    site = site_of(run, failure)
    modules = [site.module] if site is not None else []
    modules += [m for m in project_of(run).modules if m not in modules]
    for module in modules:
        made = [c for c in program_calls(run, module) if _keeps_float64(c)]
        if len(made) == 1:
            says = f"`{made[0].text}` keeps numpy's float64"
            return made[0].blamed(says, made[0].followed_by(".float()"))
    return None


def _keeps_float64(call: WrittenCall) -> bool:
    is_numpy = any(name.startswith("numpy.") for _, name in call.module.calls(call.node))
    is_made = call.name == "torch.from_numpy" or (
        call.name in ("torch.tensor", "torch.as_tensor") and is_numpy
    )
    is_cast = call.next_method in ("float", "to", "long", "half")
    return is_made and not is_cast and not call.has("dtype", 1) and "float32" not in call.text


def prefixed_load(known: KnownError, prefix: str) -> Culprit | None:
    """Return the call that loads keys with a prefix, and how to remove it."""
    for call in failing_calls(known.run, known.failure, "load_state_dict"):
        if call.arguments:
            state = call.arguments[0]
            text = f'{{k.removeprefix("{prefix}"): v for k, v in {state}.items()}}'
            says = f"the keys are loaded with the prefix {prefix}"
            return call.blamed(says, call.with_first_argument(text), as_a_whole=True)
    return None


def unmapped_load(known: KnownError) -> Culprit | None:
    """The call that loads to the device of the file."""
    for call in failing_calls(known.run, known.failure, "load") if known.kind == "device" else ():
        if call.name == "torch.load" and call.arguments and not call.has("map_location", 1):
            patch = call.with_another_argument('map_location="cpu"')
            says = f"`{call.text}` loads to the device that the file was saved from"
            return call.blamed(says, patch, as_a_whole=True)
    return None


def unconverted_tensor(known: KnownError) -> Culprit | None:
    """Return the call of .numpy() that lacks a conversion before it."""
    for call in failing_calls(known.run, known.failure, "numpy") if known.kind else ():
        if call.owner and not call.arguments:
            patch = call.with_owner(f"{call.owner}.{known.kind}")
            says = f"`{call.owner}` is converted without .{known.kind}"
            return call.blamed(says, patch, as_a_whole=True)
    return None


def strided_view(known: KnownError) -> WrittenCall | None:
    """The only view on the line, or the last that follows a transpose in the same expression."""
    calls = failing_calls(known.run, known.failure, "view")
    if len(calls) == 1:
        return calls[0]
    turned = [c for c in calls if any(word in c.owner for word in TURNED)]
    return turned[-1] if turned else None


def loss_as_function(known: KnownError) -> tuple[str, Culprit | None]:
    """The class of a loss that is called with outputs and targets, and the call."""
    for call in failing_calls(known.run, known.failure):
        is_loss = call.name.startswith("torch.nn.") and LOSS_CLASSES.search(call.method)
        if is_loss and len(call.arguments) > 1:
            says = f"{call.method} is created here, not applied"
            return call.method, call.blamed(says, call.made_first(), as_a_whole=True)
    if project_of(known.run).modules:
        return "", None
    return loss_called_as_function(failing_code(known.run, known.failure)), None
