"""Loaders and datasets: what a loop's batches come from, how large they are, how many there are."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from traindx.analysis.program.execution.events import EventForm, ProgramEvent
from traindx.analysis.program.execution.values import (
    Choice,
    FunctionValue,
    Instance,
    Items,
    Known,
    Part,
    Result,
    Table,
    Value,
    constant,
    is_same,
    origins,
)
from traindx.analysis.program.training.kinds import LOADERS, words_of
from traindx.analysis.program.training.operations import operation_of
from traindx.analysis.program.training.phases import phase_word, source_of, splits_of
from traindx.analysis.program.training.settings import constants_of

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Program, Story

RANGES = frozenset({"builtins.range", "numpy.arange", "torch.arange"})
SAME_MEMBERS = frozenset({"builtins.list", "builtins.tuple", "builtins.sorted", "numpy.array",
                          "torch.tensor", "torch.as_tensor", "numpy.asarray"})  # fmt: skip
SAMPLERS = ("sampler", "batch_sampler")
MOVES = frozenset({"to", "cuda", "float", "half", "contiguous"})
LOOKS = frozenset({"transform", "target_transform", "download", "transforms"})  # the same data
# what makes the same data of the same arguments each time
READS = ("torchvision.datasets.", "datasets.", "torchaudio.datasets.", "torch.utils.data.Tensor",
         "torch.load", "numpy.load", "pandas.read_", "sklearn.datasets.load_")  # fmt: skip
# data sets in two halves, of which the one for training is the default
HALVED = frozenset(
    f"torchvision.datasets.{name}"
    for name in ("MNIST", "FashionMNIST", "KMNIST", "QMNIST", "CIFAR10", "CIFAR100", "USPS")
)
DRAWS = ("torch.rand", "numpy.random.", "random.", "torch.normal", "torch.bernoulli",
         "torch.multinomial")  # fmt: skip
GENERATORS = ("numpy.random.default_rng", "numpy.random.RandomState", "numpy.random.Generator",
              "random.Random", "torch.Generator")  # fmt: skip
SEEDED = ".manual_seed"  # gives the generator back
SWITCHES = frozenset({"set", "use", "switch", "select", "to", "split", "mode", "phase", "train",
                      "eval", "fold"})  # fmt: skip
# where examples are fetched, and calls that wait for something else than the processor
FETCHING = frozenset({"__getitem__", "__getitems__", "__iter__", "__next__"})
FETCHES = frozenset(
    {"time.sleep", "open", "builtins.open", "PIL.Image.open", "cv2.imread", "imageio.imread",
     "skimage.io.imread", "torchvision.io.read_image", "torchvision.io.decode_image", "numpy.load",
     "torch.load", "torchaudio.load", "librosa.load", "soundfile.read", "pandas.read_csv",
     "pandas.read_parquet", "h5py.File", "requests.get", "urllib.request.urlopen",
     "subprocess.run"}
)  # fmt: skip


def is_loader(value: Value | None) -> bool:
    """Tell whether a value is a loader that the program makes."""
    return (
        isinstance(value, Result)
        and value.receiver is None
        and value.maker.rsplit(".", 1)[-1] in LOADERS
    )


def argument_of(made: Result, name: str, position: int | None = None) -> Value | None:
    """Return an argument that something was made with."""
    if name in made.kwargs:
        return made.kwargs[name]
    return made.args[position] if position is not None and position < len(made.args) else None


def dataset_of(loader: Value) -> Value | None:
    """Return what a loader reads."""
    return argument_of(loader, "dataset", 0) if isinstance(loader, Result) else None


def same_selection(one: Value, other: Value) -> bool:
    """Tell whether two loaders of one dataset choose the same of it by their other arguments.

    Torch's own reads all of it; one of another library may be told which examples to take.
    """
    if not isinstance(one, Result) or not isinstance(other, Result):
        return False
    if all(made.maker.startswith("torch.") for made in (one, other)):
        return True
    shared = one.kwargs.keys() & other.kwargs.keys() - {"dataset"}
    pairs = [*zip(one.args[1:], other.args[1:], strict=False),
             *((one.kwargs[k], other.kwargs[k]) for k in shared)]  # fmt: skip
    return all(is_same(a, b) or isinstance(a, Known) for a, b in pairs)


def has_sampler(loader: Value) -> bool:
    """Tell whether a loader is given, or may be given, the order of its examples."""
    if not isinstance(loader, Result):
        return True
    return "**" in loader.kwargs or any(
        constant(v) is not None or not isinstance(v, Known)
        for name in SAMPLERS
        if (v := loader.kwargs.get(name)) is not None
    )


def batch_size(story: Story, loader: Value) -> int | None:
    """Return how many examples a batch of a loader has; None where the source does not say.

    What the command line sets is its default.
    """
    if not isinstance(loader, Result) or "**" in loader.kwargs or "batch_sampler" in loader.kwargs:
        return None
    given = argument_of(loader, "batch_size", 1)
    if given is None:
        return 1
    sizes = constants_of(story, given)
    return size if len(sizes) == 1 and isinstance(size := sizes[0], int) else None


def cut_into_ones(batch: Value | None) -> Value | None:
    """Return the `batch.split(1)` of which a value is a piece, moved or not; else None."""
    operation = operation_of(batch)
    while operation is not None and operation.name in MOVES and operation.operands:
        batch = operation.operands[0]
        operation = operation_of(batch)
    is_drawn = isinstance(batch, Result) and batch.maker == "builtins.next" and bool(batch.args)
    pieces = batch.args[0] if isinstance(batch, Result) and is_drawn else None
    cut = operation_of(pieces)
    if cut is None or cut.name != "split" or len(cut.operands) + len(cut.settings) != 2:
        return None
    size = cut.operands[1] if cut.operands[1:] else cut.settings.get("split_size_or_sections")
    return pieces if constant(cut.settings.get("split_size", size)) == 1 else None


def different_numbers(value: Value | None) -> int | None:
    """Return how many different whole numbers a list of them has, where the source says so."""
    if isinstance(value, Items):
        found = [constant(v) for v in value.members]
        is_known = value.is_whole and all(isinstance(v, int) for v in found)
        return len(set(found)) if found and is_known else None
    if not isinstance(value, Result):
        return None
    if value.maker == "operator.mul":
        counts = [different_numbers(v) for v in value.args]
        return next((c for c in counts if c is not None), None)
    if value.maker in SAME_MEMBERS and value.args:
        return different_numbers(value.args[0])
    ends = [e for v in value.args if isinstance(e := constant(v), int)]
    if value.maker not in RANGES or not 0 < len(ends) == len(value.args) <= 2:
        return None
    return len(range(*ends)) or None


def same_data(first: Value | None, second: Value | None, depth: int = 5) -> bool:
    """Tell whether two datasets certainly hold the same examples, however they are looked at."""
    if first is None or second is None or depth == 0:
        return False
    if first is second:
        return not _draws_when_read(first)
    if isinstance(first, Known) and isinstance(second, Known):
        return first.value == second.value
    if isinstance(first, Instance) and isinstance(second, Instance):
        if first.cls.node is not second.cls.node or _draws_anew(first) or _draws_anew(second):
            return False
        return _same_fields(_settings(first), _settings(second), depth)
    if isinstance(first, Items) and isinstance(second, Items) and first.is_whole:
        return second.is_whole and _same_arguments(first, second, depth)
    if isinstance(first, Result) and isinstance(second, Result):
        is_pure = first.maker.startswith((*READS, "operator."))
        if first.maker != second.maker or first.receiver is not second.receiver or not is_pure:
            return False
        return _same_fields(_given(first), _given(second), depth)
    return False


def _given(made: Result) -> dict[object, Value]:
    names: tuple[object, ...] = ()
    found: dict[object, Value] = {}
    if made.maker in HALVED:
        names, found = ("root", "train"), {"train": Known(value=True)}
    for place, value in enumerate(made.args):
        found[names[place] if place < len(names) else place] = value
    for key, value in made.kwargs.items():
        found[key] = value
    return found


def _settings(made: Instance) -> dict[object, Value]:
    """Return what an object was made with by the names of its parameters, defaults included."""
    defaults = _defaults(made)
    found: dict[object, Value] = {n: v for n, v in defaults.items() if v is not None}
    names = list(defaults)
    given, by_name = made.fields.get("new"), made.fields.get("new by name")
    for place, value in enumerate(given.members if isinstance(given, Items) else ()):
        found[names[place] if place < len(names) else place] = value
    found.update(by_name.fields if by_name is not None else {})
    return found


def _defaults(made: Instance) -> dict[str, Value | None]:
    """Return the parameters of the class in order, with the defaults that are plain values."""
    for cls in made.cls.lineage():
        for node in cls.node.body:
            if isinstance(node, ast.FunctionDef) and node.name == "__init__":
                places = [a.arg for a in (*node.args.posonlyargs, *node.args.args)][1:]
                found: dict[str, Value | None] = dict.fromkeys(places)
                last = zip(reversed(places), reversed(node.args.defaults), strict=False)
                by_name = (a.arg for a in node.args.kwonlyargs)
                named = zip(by_name, node.args.kw_defaults, strict=True)
                for name, default in (*last, *named):
                    plain = default if isinstance(default, ast.Constant) else None
                    found[name] = None if plain is None else Known(value=plain.value)
                return found
    return {}


def _same_arguments(first: Value | None, second: Value | None, depth: int) -> bool:
    if first is None or second is None:
        return first is second
    return _same_fields(first.fields, second.fields, depth)


def _same_fields(one: Mapping[object, Value], other: Mapping[object, Value], depth: int) -> bool:
    keys = {k for k in (*one, *other) if k not in LOOKS}
    return all(same_data(one.get(k), other.get(k), depth - 1) for k in keys)


def _draws_anew(dataset: Value) -> bool:
    """Tell whether a dataset may make up its examples: each object, or each read, has others."""
    if not isinstance(dataset, Instance):
        return False
    held = (v for value in dataset.fields.values() for v in origins(value, 200))
    is_drawn = any(isinstance(v, Result) and _is_drawn(v, dataset) for v in held)
    return is_drawn or _draws_when_read(dataset)


def _draws_when_read(dataset: Value) -> bool:
    """Tell whether a dataset may give other examples at each read: it does not go by the index."""
    if not isinstance(dataset, Instance):
        return False
    if any("Iterable" in base for base in dataset.cls.foreign):
        return True
    for node in (n for cls in dataset.cls.lineage() for n in cls.node.body):
        if isinstance(node, ast.FunctionDef) and node.name == "__getitem__":
            index = node.args.args[-1].arg
            return index not in {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
    return False


def _is_drawn(value: Result, dataset: Instance) -> bool:
    """Tell whether a value is random, by a generator that the dataset does not seed itself."""
    source = value.kwargs.get("generator") if value.receiver is None else value.receiver
    if value.receiver is None:
        is_draw = value.maker.startswith(DRAWS) and not value.maker.startswith(GENERATORS)
    else:
        is_draw = value.maker != SEEDED and generator_behind(source) is not None
    return is_draw and not _is_seeded(source, dataset)


def generator_behind(value: Value | None) -> Result | None:
    """Return the random generator that a value is, also where it is seeded at once."""
    while isinstance(value, Result) and value.maker == SEEDED:
        value = value.receiver
    is_made = isinstance(value, Result) and value.receiver is None
    is_generator = is_made and value.maker.startswith(GENERATORS)  # type: ignore[union-attr]
    return value if is_generator else None  # type: ignore[return-value]


def _is_seeded(source: Value | None, dataset: Instance) -> bool:
    """Tell whether each dataset starts a generator anew, by a seed that is known or given."""
    generator = generator_behind(source)
    if generator is None or generator.site is None or not isinstance(source, Result):
        return False
    if not source.args or (source.maker == "torch.Generator"):
        return False
    home = generator.site.module.class_of(generator.site.node)
    is_inside = home is dataset.cls.node
    return is_inside or all(isinstance(v, Known) for v in source.args)


def is_switched(story: Story, dataset: Value, loaders: list[Value]) -> bool:
    """Tell whether a dataset is made to give other examples once its loaders are made."""
    made = (e for x in loaders for e in story.index.giving(x) if not e.is_own)
    first = min((e.order for e in made), default=0)
    for event in story.events:
        is_own = event.receiver is dataset or (
            isinstance(event.receiver, Part)
            and event.receiver.key == "dataset"
            and any(event.receiver.of is x for x in loaders)
        )
        if not is_own or event.order <= first:
            continue
        if event.act is EventForm.STORE and event.name not in LOOKS:
            return True
        if event.act is EventForm.CALL and words_of(event.name) & SWITCHES:
            return True
    return False


def named_loaders(story: Story) -> Iterator[dict[str, Value]]:
    """Yield the loaders that each call or file ends with, by their names or keys."""
    for held in story.bindings:
        found = {k: v for k, v in held.items() if is_loader(v)}
        for value in held.values():
            if isinstance(value, Table):
                found |= {str(k): v for k, v in value.fields.items() if is_loader(v)}
        if found:
            yield found


def is_idle(story: Story, loader: Value) -> bool:
    """Tell whether nothing goes over a loader, and nothing is given it."""
    return id(loader) not in story.recall(_taken)


def _taken(story: Story) -> set[int]:
    """What loops go over, and what calls and stores are given, alone or in a list."""
    found = {id(source_of(run.over)) for run in story.loops if run.over is not None}
    for event in story.events:
        for value in (event.receiver, *event.args, *event.kwargs.values()):
            if isinstance(value, (Items, Table, Choice)):
                found.update(map(id, value.inputs))
            else:
                found.add(id(value))
    return found


def is_held_out(name: str) -> bool:
    """Tell whether a name speaks of validation or test data."""
    return phase_word(name) in ("validation", "test")


def waits_for_examples(program: Program) -> bool:
    """Tell whether examples are read from files or elsewhere where they are fetched or collated."""
    collates = {
        given.node
        for story in program.stories
        for event in story.events
        if isinstance(given := event.kwargs.get("collate_fn"), FunctionValue)
    }
    for event in (e for s in program.stories for e in s.events if e.name in FETCHES):
        around = [event.function, *(c.module.function_of(c.node) for c in event.callers)]
        if any(f in collates or getattr(f, "name", "") in FETCHING for f in around):
            return True
    return False


def _indices(event: ProgramEvent) -> Value | None:
    """Which examples a call leaves of a dataset."""
    if event.name.rpartition(".")[2] == "Subset":
        return event.argument("indices", 1)
    return event.argument("indices", 0) if event.name == ".select" else None


def _is_training(story: Story, event: ProgramEvent) -> bool:
    """Tell whether what is cut down is training data by its names, before or after."""
    if event.result is None:
        return False
    made = [event.result, *story.made_from(event.result)]
    return {word for value in made for word in splits_of(value)} == {"train"}


def training_subsets(story: Story) -> Iterator[tuple[ProgramEvent, int]]:
    """Yield what leaves some of the training data, and how many different examples."""
    for event in story.events:
        count = different_numbers(_indices(event))
        if count is not None and _is_training(story, event):
            yield event, count
