"""Where an error leads: the user's line behind it, the line really at fault, and the finding."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from traindx.analysis.errors.root_failure import first_line, last_burst
from traindx.analysis.program.project import Project, project_of
from traindx.analysis.program.syntax import Function, Module, argument, key_of
from traindx.model.findings import Evidence, Finding, Location, Strength, cite_setting, cite_source
from traindx.model.run import Failure, Frame, Run, as_number
from traindx.tracebacks import own_frames

_NUMBER = re.compile(r"\d+")
CLASSES = ("num_classes", "n_classes", "num_labels", "nb_classes", "classes", "nclass")


def shape_of(text: str) -> tuple[int, ...]:
    """Return the sizes in ``[256, 128]`` or ``torch.Size([10])``."""
    return tuple(int(n) for n in _NUMBER.findall(text))


@dataclass(frozen=True, eq=False)
class FailingStatement:
    """A statement of the user's source."""

    module: Module
    node: ast.stmt

    @property
    def function(self) -> Function | None:
        return self.module.function_of(self.node)

    @property
    def location(self) -> Location:
        return location_of(self.module, self.node)


def location_of(module: Module, node: ast.AST) -> Location:
    """Return a node's place, a statement with a body cut down to its head."""
    line = int(getattr(node, "lineno", 1))
    body = getattr(node, "body", None)
    is_block = isinstance(body, list) and body
    last = line if is_block else int(getattr(node, "end_lineno", None) or line)
    return Location(module.path, line, last)


def culprit_frame(run: Run, failure: Failure) -> Frame | None:
    """Return the innermost frame in the user's own code, of the failure or of what followed it."""
    following = [f for f in last_burst(run) if f is not failure and f.rank == failure.rank]
    for candidate in (failure, *following):
        frames = own_frames(candidate)
        if frames:
            return frames[-1]
    return None


def site_of(run: Run, failure: Failure) -> FailingStatement | None:
    """Return the statement of the source at which the user's own code failed."""
    frame = culprit_frame(run, failure)
    return None if frame is None else site_at(run, frame)


def site_at(run: Run, frame: Frame) -> FailingStatement | None:
    """Return the statement that a frame points at, if the source is the one that ran."""
    module = module_at(project_of(run), frame.file)
    line = _line_in(module, frame) if module is not None else None
    if module is None or line is None:
        return None
    around = [
        n
        for n in ast.walk(module.tree)
        if isinstance(n, ast.stmt) and n.lineno <= line <= (n.end_lineno or n.lineno)
    ]
    if not around:
        return None
    return FailingStatement(
        module, min(around, key=lambda n: (n.end_lineno or n.lineno) - n.lineno)
    )


def module_at(project: Project, file: str) -> Module | None:
    """Return the source of a file that a traceback names: same name, most folders in common."""
    parts = file.replace("\\", "/").split("/")
    best: tuple[int, Module] | None = None
    for module in project.modules:
        own = module.path.replace("\\", "/").split("/")
        shared = 0
        while shared < min(len(own), len(parts)) and own[-1 - shared] == parts[-1 - shared]:
            shared += 1
        if shared and (best is None or shared > best[0]):
            best = shared, module
    return best[1] if best else None


def _line_in(module: Module, frame: Frame) -> int | None:
    """Return a frame's line in a source that may have changed by some lines since it ran."""
    lines = module.lines
    code = " ".join(frame.code.split())
    if not code:
        return frame.line if 0 < frame.line <= len(lines) else None
    fits = [i for i, text in enumerate(lines, 1) if " ".join(text.split()).startswith(code)]
    if frame.line in fits:
        return frame.line
    return fits[0] if len(fits) == 1 else None


def place_of(run: Run, failure: Failure) -> Location | None:
    """Return where the user's own code failed, in the source if it is at hand."""
    frame = culprit_frame(run, failure)
    if frame is None:
        return None
    site = site_at(run, frame)
    return site.location if site is not None else Location(frame.file, frame.line, frame.line)


def names_in(node: ast.AST) -> list[str]:
    """Return the names that an expression or statement reads, in order, each once."""
    keys = (key_of(n) for n in ast.walk(node) if isinstance(n, (ast.Name, ast.Attribute)))
    return list(dict.fromkeys(k for k in keys if k))


def number_named(project: Project, *names: str) -> tuple[int, Module, ast.expr] | None:
    """Return the number that code gives to one of the names, as a variable or an argument."""
    for module in project.modules:
        for node in ast.walk(module.tree):
            name, value = "", None
            if isinstance(node, ast.keyword):
                name, value = node.arg or "", node.value
            elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                name, value = node.targets[0].id, node.value
            if name in names and isinstance(value, ast.Constant) and type(value.value) is int:
                return value.value, module, value
    return None


def embedding_tables(project: Project) -> list[tuple[Module, ast.Call, str]]:
    """Return the embeddings that code makes, each with its number of rows in words."""
    found = []
    for module in project.modules:
        for call, name in module.calls():
            if name.rsplit(".", 1)[-1] in ("Embedding", "EmbeddingBag"):
                found.append((module, call, _rows(project, call)))
    return found


def embedding_culprit(run: Run, says: str) -> Culprit | None:
    """Return the first embedding of a program; `{rows}` in the words is its number of rows."""
    for module, call, rows in embedding_tables(project_of(run)):
        return Culprit(module, call, says.format(rows=rows))
    return None


def looked_up_table(run: Run, failure: Failure) -> Culprit | None:
    """Return the embedding that the failing line looks up, or the only one."""
    site = site_of(run, failure)
    read = set(names_in(site.node)) if site is not None else set()
    tables = embedding_tables(project_of(run))
    for module, call, rows in tables:
        target = module.parents.get(call)
        name = ast.unparse(target.targets[0]) if isinstance(target, ast.Assign) else ""
        if len(tables) == 1 or name in read:
            return Culprit(module, call, f"{name or 'the table'} has {rows} rows, counted from 0")
    return None


def _rows(project: Project, call: ast.Call) -> str:
    size = argument(call, "num_embeddings", 0)
    if isinstance(size, ast.Name) and (number := number_named(project, size.id)) is not None:
        return f"{size.id} = {number[0]}"
    return ast.unparse(size) if size is not None else "num_embeddings"


def cite_failure(run: Run, failure: Failure) -> Evidence:
    """Point at an exception in its artifact, and say where the user's code raised it."""
    frame = culprit_frame(run, failure)
    where = f", from {frame.file}:{frame.line}" if frame is not None else ""
    code = f" `{frame.code}`" if frame is not None and frame.code else ""
    rank = f" on rank {failure.rank}" if failure.rank is not None else ""
    return Evidence(f"{first_line(failure)}{rank}{where}{code}", failure.artifact, failure.locator)


@dataclass(frozen=True, eq=False)
class Culprit:
    """The line really at fault, what is wrong there, and the change that repairs it."""

    module: Module
    node: ast.AST
    says: str
    patch: str | None = None

    @property
    def evidence(self) -> Evidence:
        return cite_source(self.module.path, int(getattr(self.node, "lineno", 1)), self.says)

    @property
    def location(self) -> Location:
        return location_of(self.module, self.node)


def explain(
    run: Run,
    failure: Failure,
    claim: str,
    *,
    shows: str | None = None,
    suggests: Mapping[str, Strength] | None = None,
    culprit: Culprit | None = None,
    notes: Iterable[Evidence] = (),
) -> Finding:
    """Make the finding that explains a failure."""
    blamed = (culprit.evidence,) if culprit is not None else ()
    return Finding(
        claim=claim,
        strength=Strength.STRONG,
        evidence=(cite_failure(run, failure), *blamed, *notes),
        suggests=dict(suggests or {}),
        shows=shows,
        is_symptom=True,
        onset=failure.step,
        location=culprit.location if culprit is not None else place_of(run, failure),
        patch=culprit.patch if culprit is not None else None,
    )


def class_count(run: Run) -> tuple[int | None, Evidence | None]:
    """Return the number of classes that is configured or written, and where."""
    setting = run.config.find(*CLASSES)
    value = as_number(setting.value) if setting is not None else None
    if setting is not None and value is not None:
        return int(value), cite_setting(setting)
    number = number_named(project_of(run), *CLASSES)
    if number is None:
        return None, None
    count, module, node = number
    return count, cite_source(module.path, node.lineno, f"the number of classes is {count}")
