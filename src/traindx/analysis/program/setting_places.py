"""Where the source sets what a cause is about: the learning rate, the decay, the batch size."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx.analysis.program.loops import training_loops
from traindx.analysis.program.project import Project
from traindx.analysis.program.syntax import Module, key_of, literal
from traindx.analysis.program.written_acts import WrittenDo
from traindx.analysis.program.written_kinds import WrittenKind, kind_made_by
from traindx.model.findings import Location

RATE = ("lr", "learning_rate")
DECAY = ("weight_decay",)
CLIP = ("max_norm", "clip_value", "gradient_clip_val", "max_grad_norm")
SCHEDULE = ("warmup_steps", "warmup_ratio", "lr_scheduler_type")
BATCH = ("batch_size", "per_device_train_batch_size")
ABOUT = {
    "lr-too-high": RATE,
    "lr-too-low": RATE,
    "lr-zero": RATE,
    "lr-schedule-misuse": SCHEDULE,
    "weight-decay-too-high": DECAY,
    "gradient-clipping-too-tight": CLIP,
    "batch-too-small": BATCH,
    "batchnorm-small-batch": BATCH,
}
CONFIGURES = ("TrainingArguments", "Seq2SeqTrainingArguments", "Trainer", "SFTConfig")
CLIPS = ("clip_grad_norm_", "clip_grad_value_")


def place_of_setting(project: Project, cause: str) -> Location | None:
    """Return the one place that sets what a cause is about; none where there are several."""
    if _has_schedule(project) and cause in ("lr-schedule-misuse", "lr-zero"):
        return _only(_schedule_steps(project))  # a schedule took the rate to where it is
    names = ABOUT.get(cause)
    if names is None:
        return None
    return _only(
        _origin(project, module, call, value)
        for module in project.training_modules
        for call, name in module.calls()
        for value in given_values(call, name, names)
    )


def _only(found: Iterator[Location]) -> Location | None:
    places = set(found)
    return places.pop() if len(places) == 1 else None


def _schedule_steps(project: Project) -> Iterator[Location]:
    for loop in training_loops(project):
        for act in loop.does(WrittenDo.SCHEDULER_STEP):
            yield act.location


def _has_schedule(project: Project) -> bool:
    return any(True for _ in _schedule_steps(project))


def given_values(call: ast.Call, name: str, names: tuple[str, ...]) -> Iterator[ast.expr]:
    """Yield what a call that takes such a setting is given for it."""
    last = name.rsplit(".", 1)[-1]
    is_optimizer = names in (RATE, DECAY) and kind_made_by(name) is WrittenKind.OPTIMIZER
    is_loader = names == BATCH and kind_made_by(name) is WrittenKind.LOADER and _shuffles(call)
    is_clip = names == CLIP and last in CLIPS
    if not (is_optimizer or is_loader or is_clip or last in CONFIGURES):
        return
    for keyword in call.keywords:
        if keyword.arg in names:
            yield keyword.value
            return
    is_second = (is_optimizer and names == RATE) or is_clip or is_loader
    if is_second and len(call.args) > 1 and not isinstance(call.args[1], ast.Starred):
        yield call.args[1]


def _shuffles(call: ast.Call) -> bool:
    """Tell the loader of the training data by its order."""
    given = next((k.value for k in call.keywords if k.arg in ("shuffle", "sampler")), None)
    return given is not None and literal(given) is not False


def _origin(project: Project, module: Module, call: ast.Call, value: ast.expr) -> Location:
    """Where the number stands that a call is given: a constant, a default, an entry, an option."""
    if literal(value) is None:
        word = _last_word(value)
        found = list(_numbers(project, module, call, value, word)) if word else []
        if len(found) == 1:
            return found[0]
    return _line(module, value)


def _last_word(value: ast.expr) -> str:
    if isinstance(value, ast.Subscript):
        key = literal(value.slice)
        return key if isinstance(key, str) else ""
    return (key_of(value) or "").rsplit(".", 1)[-1]


def _numbers(
    project: Project, module: Module, call: ast.Call, value: ast.expr, word: str
) -> Iterator[Location]:
    """The numbers that go by a name: bound to it, an entry of a dict, a default of an option."""
    if isinstance(value, ast.Name):
        bound = [v for v in project.lookup(module, call, value.id) if literal(v) is not None]
        yield from (_line(module, v) for v in bound)
        if bound:
            return
    for home in project.training_modules:
        for node in ast.walk(home.tree):
            number = _number_called(node, word)
            if number is not None and isinstance(literal(number), (int, float)):
                yield _line(home, number)


def _number_called(node: ast.AST, word: str) -> ast.expr | None:
    if isinstance(node, ast.Dict):
        entries = zip(node.keys, node.values, strict=True)
        return next((v for k, v in entries if k is not None and literal(k) == word), None)
    if isinstance(node, ast.arguments):
        given = [*node.posonlyargs, *node.args]
        late = dict(zip(reversed(given), reversed(node.defaults), strict=False))
        return next((v for a, v in late.items() if a.arg == word), None)
    if isinstance(node, ast.AnnAssign) and key_of(node.target) == word:
        return node.value  # a field of a dataclass
    is_option = isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "add_argument"
    if is_option and isinstance(node, ast.Call) and node.args:
        flag = str(literal(node.args[0]) or "").lstrip("-").replace("-", "_")
        default = next((k.value for k in node.keywords if k.arg == "default"), None)
        return default if flag == word else None
    return None


def _line(module: Module, node: ast.expr) -> Location:
    return Location(module.path, node.lineno, node.end_lineno or node.lineno)
