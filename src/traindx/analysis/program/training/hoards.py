"""What is kept and only grows: lists of a training loop, outputs of a trainer's evaluation."""

from __future__ import annotations

from collections.abc import Iterator

from traindx.analysis.program.execution.events import ProgramEvent
from traindx.analysis.program.execution.truth import is_none
from traindx.analysis.program.execution.values import Answer, Items, Result, Value
from traindx.analysis.program.training.graphs import is_emptied
from traindx.analysis.program.training.phases import training_loops
from traindx.analysis.program.training.program import Program, Story
from traindx.analysis.program.training.tensors import is_tensor

TRAINERS = frozenset({"transformers.Trainer", "transformers.trainer.Trainer"})
# models with many scores at every position: of the tokens of a vocabulary, the classes of a pixel
LANGUAGE_MODELS = ("LMHeadModel", "ForCausalLM", "ForMaskedLM", "ForConditionalGeneration",
                   "ForSeq2SeqLM", "ForSemanticSegmentation")  # fmt: skip
SHORTENS = frozenset({"eval_accumulation_steps", "prediction_loss_only", "batch_eval_metrics",
                      "eval_do_concat_batches"})  # fmt: skip
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
    given = settings.kwargs.keys() if isinstance(settings, Result) else ()
    return bool(SHORTENS & set(given))


def _is_language_model(model: Value | None) -> bool:
    while isinstance(model, Result) and model.receiver is not None:
        model = model.receiver
    if not isinstance(model, Result) or not model.maker.startswith("transformers."):
        return False
    return (
        model.maker.removesuffix(".from_pretrained")
        .removesuffix(".from_config")
        .endswith(LANGUAGE_MODELS)
    )
