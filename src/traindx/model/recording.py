"""What a recorder saw inside the processes of a training run: frozen values, one class per record.

A recording is a folder with one file of JSON lines per process. The keys of a record are the names
of the fields below, so that this module is the format's documentation; `line` is the record's line,
by which evidence is cited.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import nan

FORMAT = 1
Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Place:
    """A line of the user's code."""

    file: str
    line: int
    function: str = ""
    code: str = ""


@dataclass(frozen=True, slots=True)
class Summary:
    """What is known of a tensor without keeping it; of a large one, of an even sample of it."""

    name: str = ""
    shape: Shape = ()
    dtype: str = ""
    device: str = ""
    low: float = nan
    high: float = nan
    mean: float = nan
    std: float = nan
    nonfinite: int = 0
    distinct: int | None = None  # different values, where they were counted
    spread: float = nan  # of a batch: how far examples differ; 0 if all are the same


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a model, and the optimizer that owns it."""

    name: str
    shape: Shape = ()
    dtype: str = ""
    is_trainable: bool = True
    optimizer: int | None = None


@dataclass(frozen=True, slots=True)
class Submodule:
    """A part of a model by its dotted name."""

    name: str
    type: str


@dataclass(frozen=True, slots=True)
class Model:
    """A model that was trained; told again when its parameters or their owners change."""

    line: int
    id: int = 0
    type: str = ""
    step: int = 0
    parameters: tuple[Parameter, ...] = ()
    modules: tuple[Submodule, ...] = ()
    wrapper: str = ""  # DistributedDataParallel, OptimizedModule …
    is_compiled: bool = False
    is_sharded: bool = False
    is_hidden: bool = False  # found in memory only: no name of the program leads to it


@dataclass(frozen=True, slots=True)
class Optimizer:
    """An optimizer with its settings; `strangers` are parameters that no known model has."""

    line: int
    id: int = 0
    type: str = ""
    step: int = 0
    groups: tuple[Mapping[str, object], ...] = ()
    size: int = 0
    strangers: int = 0
    shared: int = 0  # parameters that another optimizer holds too
    place: Place | None = None  # where it was stepped


@dataclass(frozen=True, slots=True)
class Loader:
    """A data loader that was iterated over."""

    line: int
    id: int = 0
    dataset: str = ""
    size: int | None = None
    batches: int | None = None
    batch_size: int | None = None
    sampler: str = ""
    is_shuffled: bool = False
    workers: int = 0
    drop_last: bool = False
    place: Place | None = None


@dataclass(frozen=True, slots=True)
class Epoch:
    """One pass over a loader: how many batches it gave; `is_whole` unless it was broken off."""

    line: int
    loader: int = 0
    batches: int = 0
    step: int = 0
    time_s: float = nan
    is_whole: bool = True
    trained: int = 0  # optimizer steps taken during the pass …
    own: int | None = None  # … and those while the last batch was one of its own
    first: tuple[Summary, ...] = ()  # the first batch; of the first few passes


@dataclass(frozen=True, slots=True)
class Activation:
    """The output of an operation in the graph of the loss, named after the parameter below it."""

    name: str
    op: str
    shape: Shape = ()
    low: float = nan
    high: float = nan
    mean: float = nan
    std: float = nan
    nonfinite: int = 0
    dead: float = nan  # share of units that are zero for every example of the batch
    saturated: float = nan  # share of values at the flat ends
    masked_rows: int = 0  # softmax: rows that came out as NaN


@dataclass(frozen=True, slots=True)
class LossInput:
    """What entered a loss function, read from the graph below the loss."""

    loss: str  # cross_entropy, nll_loss, mse_loss, l1_loss, smooth_l1_loss, bce, bce_with_logits …
    producer: str = ""  # the operation that made the prediction: softmax, log_softmax, sigmoid …
    prediction: Summary = field(default_factory=Summary)
    target: Summary | None = None
    broadcast: tuple[Shape, ...] = ()  # the shapes that met, and the one that came of it
    rows_sum_to_one: bool = False  # of the logits that cross_entropy was given
    classes: int = 0
    labels: Mapping[str, int] = field(default_factory=dict)  # the most frequent, by class
    predictions: Mapping[str, int] = field(default_factory=dict)
    ignored: float = nan  # share of targets that are not counted
    spread: float = nan  # how far outputs differ between examples, over their overall size


@dataclass(frozen=True, slots=True)
class Sample:
    """A step that was looked at closely. Columns follow the parameters of the model records."""

    line: int
    step: int = 0
    optimizer: int = 0
    loss: float = nan
    names: tuple[str, ...] = ()
    grad_norms: tuple[float | None, ...] = ()  # None: no gradient
    weight_norms: tuple[float, ...] = ()
    update_ratios: tuple[float | None, ...] = ()  # None: not known
    has_moved: tuple[bool | None, ...] = ()  # whether the step changed the parameter at all
    activations: tuple[Activation, ...] = ()
    losses: tuple[LossInput, ...] = ()
    batch: tuple[Summary, ...] = ()
    entered: int | None = None  # the module that was called first in the step, by a number …
    inputs: tuple[Summary, ...] = ()  # … and what it was given
    rss_bytes: float = nan
    device_bytes: float = nan
    is_training: bool | None = None  # the mode of the model as a whole
    evaluating: tuple[str, ...] = ()  # dropout and normalisation that is in eval mode
    live: tuple[str, ...] = ()  # dropout and normalisation that is in train mode
    carried: bool | None = None  # gradients of the step before were still there
    cleared: bool | None = None  # gradients were gone between backward and step
    pending: tuple[int, ...] = ()  # other optimizers whose parameters hold gradients now
    graph_nodes: int = 0  # of the loss; more from step to step if graphs are chained
    kept_graphs: int = 0  # of earlier samples whose graph is still there …
    past_graphs: int = 0  # … and how many there were
    late_clip: Place | None = None  # where gradients were clipped that had been used already
    repeated: int = 0  # examples that came before with the same label …
    relabelled: int = 0  # … and with another one
    place: Place | None = None  # where backward was called


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Forward passes without gradient in a row, and the mode the model was in."""

    line: int
    step: int = 0
    model: int = 0
    forwards: int = 0
    is_training: bool = False
    has_grad: bool = False
    live: tuple[str, ...] = ()
    loader: int | None = None
    entered: int | None = None  # the number of the module that was called, as in samples …
    inputs: tuple[Summary, ...] = ()  # … and what the first pass gave it, now and then
    place: Place | None = None


@dataclass(frozen=True, slots=True)
class StepTensor:
    """A tensor of the step; one that is changed in place is another tensor in the same memory.

    What is said of values is said of a corner of up to 64 entries in every dimension.
    """

    shape: Shape = ()
    dtype: str = ""
    device: str = "cpu"
    stride: Shape = ()  # where the values do not lie in order
    memory: int = -1  # shared by views of one another
    # parameter:NAME, buffer:NAME, state:NAME/KEY of an optimizer, batch/KEY,
    # or empty: memory that is yet to be filled
    role: str = ""
    needs_grad: bool = False
    low: float = nan
    high: float = nan
    mean: float = nan
    zeros: float = 0.0  # share of values that are 0
    nonfinite: int = 0
    is_whole: bool = False  # every value is a whole number
    distinct: int | None = None  # different values among the first 2,048 of whole numbers
    is_sorted: bool = False
    is_permutation: bool = False  # 0 … n - 1 in some order
    constant: Shape = ()  # dimensions along which nothing changes
    ones: Shape = ()  # dimensions over which the values add up to one
    equal_rows: int = 0  # of the first 64 rows, those that one before them equals
    # what backward gave it through the operations that it is the only one to learn from
    grad_size: float = nan  # largest value without its sign
    grad_zeros: float = nan  # share


@dataclass(frozen=True, slots=True)
class StepOperation:
    """An operation that torch dispatched; tensors, modules and places are given by position."""

    name: str
    inputs: tuple[int, ...] = ()
    outputs: tuple[int, ...] = ()
    module: int | None = None
    place: int | None = None
    settings: Mapping[str, object] = field(default_factory=dict)  # arguments that are no tensors
    value: float = nan  # what was fetched to the host
    ahead: int | None = None  # positions by which targets follow the tokens that were looked up
    is_without_grad: bool = False
    is_direct: bool = False  # the user's own line called it, and no layer or library in between


@dataclass(frozen=True, slots=True, eq=False)
class CapturedStep:
    """A training step or an evaluation pass, seen whole; `why` says what was left out."""

    line: int
    kind: str = "training"  # training, alert, evaluation
    step: int = 0
    tensors: tuple[StepTensor, ...] = ()
    operations: tuple[StepOperation, ...] = ()
    modules: tuple[str, ...] = ()
    places: tuple[Place, ...] = ()
    losses: tuple[int, ...] = ()  # what backward was called on
    outputs: tuple[int, ...] = ()  # what models returned to the program
    updates: tuple[StepOperation, ...] = ()  # of optimizers; outputs are what they changed
    backward_operations: int = 0
    is_replayed: bool = False  # run once more without the compiler, up to the loss
    cost_s: float = nan
    why: str = ""


@dataclass(frozen=True, slots=True)
class Loaded:
    """Weights that were loaded into a module, by their names."""

    line: int
    step: int = 0
    module: str = ""
    matched: int = 0
    missing: int = 0  # names of the module that nothing was loaded for
    unexpected: int = 0  # names that the module does not have
    renamed: int = 0  # missing names that are there with, or without, something before them
    lacks: tuple[str, ...] = ()  # some of the missing …
    brings: tuple[str, ...] = ()  # … and of the unexpected
    place: Place | None = None


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """Numbers that are the same on every rank if parameters, or batches, are the same."""

    line: int
    step: int = 0
    parameters: float | None = None
    batch: float | None = None


@dataclass(frozen=True, slots=True)
class Caught:
    """An exception that ended the process or a thread, with the tensors of the user's frames."""

    line: int
    type: str = ""
    message: str = ""
    step: int = 0
    time_s: float = nan
    thread: str = ""
    places: tuple[Place, ...] = ()
    tensors: tuple[tuple[str, Summary], ...] = ()  # "function, line 12" and the tensor
    modules: tuple[tuple[str, str, tuple[Shape, ...]], ...] = ()  # name, type, input shapes
    kept: str = ""  # the folder with the batch, relative to the recording


@dataclass(frozen=True, slots=True)
class NonFinite:
    """The first value that was no number, and what a replay of the step found."""

    line: int
    step: int = 0
    seen_in: str = "loss"  # loss, gradient
    phase: str = ""  # data, forward, loss, backward, weights; empty where the replay found nothing
    op: str = ""
    module: str = ""
    module_type: str = ""
    parameter: str = ""
    place: Place | None = None
    inputs: tuple[Summary, ...] = ()
    is_exact: bool = False  # the replay gave the same outcome
    why: str = ""  # what the inputs say: "the smallest input of log is 0"
    kept: str = ""


@dataclass(frozen=True, slots=True)
class Stall:
    """No progress for many times the usual step: where every thread stood."""

    line: int
    step: int = 0
    waited_s: float = nan
    median_s: float = nan
    stacks: tuple[tuple[str, tuple[Place, ...]], ...] = ()
    collectives: tuple[Mapping[str, object], ...] = ()  # newest last, from the flight recorder
    is_over: bool = False  # it went on afterwards


@dataclass(frozen=True, slots=True)
class Counts:
    """What happened so far; the last of these stands for the process."""

    line: int
    time_s: float = nan
    steps: int = 0
    backwards: int = 0
    forwards: int = 0
    samples: int = 0
    scaled: int = 0  # losses that went through a gradient scaler
    has_moved: bool | None = None  # whether any weight ever changed
    overhead: float = nan
    is_end: bool = False
    why_off: str = ""  # the recorder turned itself off


@dataclass(frozen=True, slots=True)
class Process:
    """One training process and everything its recorder wrote."""

    path: str = ""
    pid: int = 0
    rank: int = 0
    world_size: int = 1
    host: str = ""
    argv: tuple[str, ...] = ()
    main: str = ""
    cwd: str = ""
    python: str = ""
    torch: str = ""
    started_s: float = nan
    models: tuple[Model, ...] = ()
    optimizers: tuple[Optimizer, ...] = ()
    loaders: tuple[Loader, ...] = ()
    epochs: tuple[Epoch, ...] = ()
    samples: tuple[Sample, ...] = ()
    evaluations: tuple[Evaluation, ...] = ()
    captured: tuple[CapturedStep, ...] = ()
    fingerprints: tuple[Fingerprint, ...] = ()
    loads: tuple[Loaded, ...] = ()
    caught: tuple[Caught, ...] = ()
    nonfinite: tuple[NonFinite, ...] = ()
    stalls: tuple[Stall, ...] = ()
    counts: Counts | None = None

    def model(self, id: int) -> Model | None:
        """Return the latest that was told of a model."""
        return next((m for m in reversed(self.models) if m.id == id), None)


@dataclass(frozen=True, slots=True)
class Ending:
    """How the command ended, as its parent saw it."""

    command: tuple[str, ...] = ()
    exit_code: int | None = None
    signal: int | None = None
    started_s: float = nan
    ended_s: float = nan
    is_running: bool = False
    last_stack: str = ""  # what the interpreter wrote when it crashed or was stopped


@dataclass(frozen=True, slots=True)
class Recording:
    """All processes of one command, rank 0 first, and how the command ended."""

    processes: tuple[Process, ...] = ()
    ending: Ending | None = None

    @property
    def main(self) -> Process | None:
        return self.processes[0] if self.processes else None
