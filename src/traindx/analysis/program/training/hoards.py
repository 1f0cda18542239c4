"""What is kept and only grows: lists of a training loop, outputs of a trainer's evaluation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from traindx.analysis.program.execution.events import EventForm, ProgramEvent
from traindx.analysis.program.execution.truth import is_none, truth_of
from traindx.analysis.program.execution.values import (
    Answer,
    Items,
    Known,
    Part,
    Result,
    Table,
    Value,
    constant,
)
from traindx.analysis.program.training.contents import SAME_NUMBERS
from traindx.analysis.program.training.graphs import is_emptied
from traindx.analysis.program.training.kinds import Kind
from traindx.analysis.program.training.operations import Operation, operation_of
from traindx.analysis.program.training.phases import HeldOutPass, evaluations, training_loops
from traindx.analysis.program.training.program import Program, Story
from traindx.analysis.program.training.tensors import is_tensor

TRAINERS = frozenset({"transformers.Trainer", "transformers.trainer.Trainer"})
# models with many scores at every position: of the tokens of a vocabulary, the classes of a pixel
LANGUAGE_MODELS = ("LMHeadModel", "ForCausalLM", "ForMaskedLM", "ForConditionalGeneration",
                   "ForSeq2SeqLM", "ForSemanticSegmentation")  # fmt: skip
SHORTENS = frozenset({"eval_accumulation_steps", "prediction_loss_only", "batch_eval_metrics",
                      "eval_do_concat_batches"})  # fmt: skip
ON_HOST = ("use_cpu", "no_cuda")
TENSOR_METHODS = frozenset({".detach", ".clone", ".cpu", ".numpy"})  # what only a tensor has


def hoard_of(program: Program) -> ProgramEvent | None:
    """Return the call that adds a tensor in every step to a list that nothing shortens."""
    for story in program.stories:
        for loop in training_loops(story):
            for event in loop.events:
                if event.name == ".append" and event.args and _only_grows(story, event):
                    return event
    return None


def _only_grows(story: Story, event: ProgramEvent) -> bool:
    kept = event.receiver
    if not isinstance(kept, Items) or kept.born or is_emptied(story, kept):
        return False
    return _is_kept_tensor(story, event.args[0])


def _is_kept_tensor(story: Story, value: Value) -> bool:
    is_made = isinstance(value, Result) and value.maker in TENSOR_METHODS
    return is_made or is_tensor(story, value) is Answer.YES


def trainer_outputs(story: Story) -> Iterator[ProgramEvent]:
    """Yield trainers of Transformers that keep all logits of a language model for a metric.

    Without `preprocess_logits_for_metrics` and `eval_accumulation_steps` these stay on the device
    until the evaluation is over.
    """
    for event in story.events:
        metrics = event.argument("compute_metrics")
        if event.name not in TRAINERS or metrics is None or "**" in event.kwargs:
            continue
        is_asked = is_none(metrics) is False and _is_evaluated(event)
        is_cut = "preprocess_logits_for_metrics" in event.kwargs
        if is_asked and not is_cut and _is_language_model(event.argument("model", 0)):
            settings = event.argument("args", 1)
            is_plain = isinstance(settings, Result) and "**" not in settings.kwargs
            if is_plain and not _shortens(settings):
                yield event


def _is_evaluated(event: ProgramEvent) -> bool:
    data = event.argument("eval_dataset")
    return data is not None and is_none(data) is not True


def _shortens(settings: Value | None) -> bool:
    """Tell whether logits leave the device in time, or there is no device but the host."""
    given = settings.kwargs if isinstance(settings, Result) else {}
    is_host = any(truth_of(given[name]) is not False for name in ON_HOST if name in given)
    return is_host or bool(SHORTENS & set(given))


def _is_language_model(model: Value | None) -> bool:
    """Tell whether a model of Transformers has many scores at every position."""
    while isinstance(model, Result) and model.receiver is not None:
        model = model.receiver
    if not isinstance(model, Result) or not model.maker.startswith("transformers."):
        return False
    return (
        model.maker.removesuffix(".from_pretrained")
        .removesuffix(".from_config")
        .endswith(LANGUAGE_MODELS)
    )


def _scores_positions(model: Value | None) -> bool:
    """Tell whether a library's model gives scores for every token or pixel."""
    if _is_language_model(model):
        return True
    while isinstance(model, Result) and model.receiver is not None:
        model = model.receiver
    segments = ("torchvision.models.segmentation.", "segmentation_models_pytorch.")
    return isinstance(model, Result) and model.maker.startswith(segments)


KEEPS = (".append", ".extend")
JOINS = ("torch.cat", "torch.concat", "torch.vstack")
# what leaves a tensor as large as it is, and on its device
AS_LARGE = (SAME_NUMBERS - {"cpu", "getitem", "select", "narrow", "gather", "index_select",
                            "masked_select"}) | {"softmax", "log_softmax", "sigmoid"}  # fmt: skip
ADDED = frozenset({"add", "sub", "mul", "div"})  # of several passes, as their mean
IMAGES = frozenset({"conv2d", "conv3d", "conv_transpose2d", "conv_transpose3d"})
SCORES = ("logits", "out")  # of what models of libraries return


@dataclass(frozen=True, eq=False)
class KeptOutputs:
    """Where an evaluation keeps the scores for every position of all that it goes over."""

    event: ProgramEvent
    evaluation: HeldOutPass


def kept_outputs(story: Story) -> Iterator[KeptOutputs]:
    """Yield where full outputs of an evaluation on a GPU are added to a list or a tensor."""
    for evaluation in evaluations(story) if _is_on_gpu(story) else ():
        output = evaluation.forward.event.result
        if output is None or not _has_positions(story, output):
            continue
        outputs = [d.event.result for d in evaluation.passes]
        for event in evaluation.loop.events if evaluation.loop is not None else ():
            added = _added(event)
            whole = (v for a in added for v in _whole(a))
            if any(v is o for v in whole for o in outputs):
                yield KeptOutputs(event, evaluation)


def _added(event: ProgramEvent) -> tuple[Value, ...]:
    """What is added to a list, a table or a tensor that gets longer: `cat([found, out])`."""
    if event.act is EventForm.STORE and event.name == "[]" and isinstance(event.receiver, Table):
        return event.args[:1] if not isinstance(event.args[-1], Known) else ()
    if event.name in KEEPS and event.args and isinstance(event.receiver, Items):
        return event.args[-1:]
    joined = event.args[0] if event.name in JOINS and event.args else None
    if not isinstance(joined, Items) or not isinstance(event.result, Result):
        return ()
    rest = [v for v in joined.members if not set(v.names) & event.result.names]
    return tuple(rest) if 0 < len(rest) < len(joined.members) else ()


def _whole(value: Value, depth: int = 12) -> Iterator[Value]:
    """Yield a tensor and what it has all numbers of, through lists and gathering."""
    yield value
    if depth == 0:
        return
    operation = operation_of(value)
    if isinstance(value, Items):
        for member in value.members:
            yield from _whole(member, depth - 1)
    elif isinstance(value, Part) and isinstance(value.of, Result):
        if _gathers(value.of) or value.key in SCORES:
            yield from _whole(value.of, depth - 1)
    elif isinstance(value, Result) and _gathers(value):
        for given in value.args:
            yield from _whole(given, depth - 1)
    elif operation is not None and operation.name in AS_LARGE and operation.operands:
        yield from _whole(operation.operands[0], depth - 1)
    elif operation is not None and operation.name in ADDED:
        for operand in operation.operands:
            yield from _whole(operand, depth - 1)


def _gathers(value: Result) -> bool:
    return value.maker in (".gather_for_metrics", ".gather", ".all_gather") and bool(value.args)


def _has_positions(story: Story, output: Value) -> bool:
    """Tell whether an output has scores for every position of an example, not one row for it."""
    if isinstance(output, Result) and _scores_positions(output.receiver):
        return True
    made = operation_of(output)
    if made is not None and made.name in IMAGES:
        return True
    onward = (operation_of(v) for v in story.flow.onward(output))
    return any(o is not None and _flattens(o) for o in onward)


def _flattens(operation: Operation) -> bool:
    """`x.flatten(0, 1)`, `x.view(-1, n)`, `x.transpose(1, 2)`: there are three dimensions."""
    given = [constant(v) for v in operation.operands[1:]]
    if operation.name == "flatten":
        return given == [0, 1]
    if operation.name in ("view", "reshape"):
        return len(given) == 2 and given[0] == -1
    return operation.name == "transpose" and sorted(map(str, given)) in (["1", "2"], ["-1", "-2"])


def _is_on_gpu(story: Story) -> bool:
    """Tell whether the program moves its model to a device, or lets a library do so."""
    made = [e.result for e in story.events if e.result is not None]
    if any(story.kind_of(v).kind is Kind.ENGINE or _trains_anywhere(v) for v in made):
        return True
    return story.program.recall(_speaks_of_gpus)


def _trains_anywhere(value: Value) -> bool:
    """Tell whether a value is Lightning's trainer, which takes a GPU where there is one."""
    is_trainer = isinstance(value, Result) and value.maker.endswith((".Trainer", ".Fabric"))
    is_known = isinstance(value, Result) and "lightning" in value.maker.lower()
    chosen = constant(value.kwargs.get("accelerator")) if isinstance(value, Result) else None
    return is_trainer and is_known and chosen != "cpu"


def _speaks_of_gpus(program: Program) -> bool:
    modules = program.project.training_modules
    return any(word in m.text for m in modules for word in ("cuda", "gpu"))
