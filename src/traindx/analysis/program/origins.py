"""Where the weights of a program come from: its own beginning, or another run."""

from __future__ import annotations

import re

from traindx.analysis.program.execution.events import EventForm, ProgramEvent
from traindx.analysis.program.execution.values import Known, Unknown, Value
from traindx.analysis.program.training.acts import Do
from traindx.analysis.program.training.kinds import Kind
from traindx.analysis.program.training.program import Program, program_of
from traindx.model.run import Run

# packages whose models come with weights
SOURCES = frozenset(
    {"timm", "open_clip", "clip", "sentence_transformers", "diffusers", "fairseq", "transformers",
     "lpips", "safetensors", "huggingface_hub", "torchvision.models", "torch.hub"}
)  # fmt: skip
# functions out of sight that bring weights along say so; a word too many only costs a remark
BRINGS = re.compile(
    r"load_?(?:weights|check|file|model|pretrained|from_check)|pretrained|resume_from"
)
SWITCHES = frozenset({"pretrained", "weights", "ckpt_path", "checkpoint", "resume_from_checkpoint"})
RESCALES = re.compile(
    r"weight_norm|spectral_norm|parametri|(?:layer|batch|group|rms|instance)_norm$|normalize$"
)


def loads_weights(run: Run) -> bool:
    """Tell whether the program may begin with weights of another run."""
    loads = (s.does(Do.LOAD, Do.LOAD_STATE) for s in program_of(run).stories)
    return brings_weights(run) or any(loads)


def brings_weights(run: Run) -> bool:
    """Tell whether the program uses models that come with weights, or may ask for such."""
    program = program_of(run)
    return _imports(program) or any(_brings(e) for s in program.stories for e in s.events)


def _imports(program: Program) -> bool:
    aliases = (name for m in program.project.modules for name in m.aliases.values())
    return any(name == s or name.startswith(f"{s}.") for name in aliases for s in SOURCES)


def _brings(event: ProgramEvent) -> bool:
    if event.act is EventForm.STORE:
        return False
    given = (v for k, v in event.kwargs.items() if k in SWITCHES)
    if any(not (isinstance(v, Known) and v.value in (None, False)) for v in given):
        return True
    return bool(BRINGS.search(_name(event)))


def _name(event: ProgramEvent) -> str:
    """Return the name of what is called, also where nothing in sight defines it."""
    receiver = event.receiver
    return receiver.name if event.name == "()" and isinstance(receiver, Unknown) else event.name


def loads_or_copies(run: Run) -> bool:
    """Tell whether the program loads weights at any time, be they its own, or copies a model."""
    program = program_of(run)
    every = [e for s in program.stories for e in s.events]
    is_copied = any(e.name in ("copy.deepcopy", ".copy_") for e in every)
    return is_copied or any(s.does(Do.LOAD, Do.LOAD_STATE) for s in program.stories)


def rescales(run: Run) -> bool:
    """Tell whether weights are scaled before use, or signals normalised by no layer of theirs."""
    events = (e for s in program_of(run).stories for e in s.events)
    return any(RESCALES.search(_name(e)) for e in events)


def freezing(run: Run) -> ProgramEvent | None:
    """Return the first event that turns gradients of weights off, if none turns any on."""
    program = program_of(run)
    found: list[tuple[ProgramEvent, Value]] = [
        (e, e.args[0] if e.args else Known(True))
        for s in program.stories
        for e in s.events
        if (e.act is EventForm.STORE and e.name == "requires_grad") or e.name == ".requires_grad_"
    ]
    is_off = all(isinstance(v, Known) and v.value is False for _, v in found)
    return found[0][0] if found and is_off else None


def makes_optimizers(run: Run) -> bool:
    """Tell whether the program itself gives an optimizer its parameters."""
    return any(s.made(Kind.OPTIMIZER) for s in program_of(run).stories)


def defined_names(run: Run) -> frozenset[str]:
    """Return the names of the classes and functions that the program defines."""
    modules = program_of(run).project.modules
    every = (name for m in modules for name in (*m.classes, *m.functions))
    return frozenset(every)
