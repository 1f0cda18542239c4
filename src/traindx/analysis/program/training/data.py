"""The data of a training program: loaders with their role, what they read, and in which order.

A loader's role follows from the loop that consumes it; names are a last, uncertain hint.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING

from traindx.analysis.program.execution.events import LoopRun, ProgramEvent
from traindx.analysis.program.execution.examples import INDEX, Example, is_loader, settings_of
from traindx.analysis.program.execution.values import (
    Answer,
    Generator,
    Instance,
    Items,
    Known,
    Part,
    Result,
    Table,
    Unknown,
    Value,
    constant,
    is_same,
    options_of,
    origins,
)
from traindx.analysis.program.training.acts import Deed, Do
from traindx.analysis.program.training.contents import whole_tensor
from traindx.analysis.program.training.kinds import names_of, words_of
from traindx.analysis.program.training.operations import operation_name
from traindx.analysis.program.training.phases import LEARNS, phase_word, source_of

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Story

JOINS = frozenset({"ConcatDataset", "ChainDataset", "StackDataset"})
STACKS = frozenset({"cat", "concat", "concatenate", "vstack", "append"})
PARTS = frozenset({"random_split", "train_test_split"})
# datasets that are read in the order of their classes
BY_CLASS = frozenset({"ImageFolder", "DatasetFolder"})
SAMPLERS = ("sampler", "batch_sampler")


class Role(Enum):
    """What data are for."""

    TRAIN = "training"
    HELD_OUT = "held-out"
    UNKNOWN = "unknown"


@dataclass(frozen=True, eq=False)
class Feed:
    """A data loader: what it reads, how, and what for."""

    story: Story
    loader: Result
    example: Example | None

    @cached_property
    def settings(self) -> Mapping[str, Value]:
        """Its arguments by name."""
        return settings_of(self.loader)

    @property
    def dataset(self) -> Value | None:
        return self.settings.get("dataset")

    @property
    def sampler(self) -> Value | None:
        """The sampler or batch sampler that it is given."""
        given = [self.settings.get(name) for name in SAMPLERS]
        return next((s for s in given if s is not None and not _is_none(s)), None)

    @property
    def shuffles(self) -> Answer:
        """Whether torch shuffles for it; unknown where that is decided at run time."""
        if "**" in self.loader.kwargs:
            return Answer.UNKNOWN
        given = self.settings.get("shuffle")
        if given is None:
            return Answer.NO
        value = constant(given)
        return Answer.of(bool(value)) if isinstance(given, Known) else Answer.UNKNOWN

    @property
    def name(self) -> str:
        """The name that it goes by, one that speaks of its role first."""
        given = (a.name for a in self.story.execution.assignments if a.value is self.loader)
        first = next(given, "")
        names = sorted(self.loader.names, key=lambda n: (not phase_word(n), n != first, len(n), n))
        return next(iter(names), "the loader")

    @cached_property
    def runs(self) -> list[LoopRun]:
        """The loops that consume it: that go over it, or take its batches one by one."""
        over = [r for r in loop_runs(self.story) if _is_over(r.over, self.loader)]
        drawn = self.story.recall(_drawing_runs).get(id(self.loader), [])
        return [*over, *(r for r in drawn if r not in over)]

    @cached_property
    def uses(self) -> set[Role]:
        """What the loops that consume it do."""
        return {role for run in self.runs if (role := use_of(self.story, run)) is not Role.UNKNOWN}

    @cached_property
    def role(self) -> Role:
        """What it is for: by the loops that consume it, else by its name or its dataset's."""
        if Role.TRAIN in self.uses:
            return Role.TRAIN
        named = self.named
        if Role.HELD_OUT in self.uses:
            return Role.UNKNOWN if named is Role.TRAIN else Role.HELD_OUT
        return named

    @property
    def named(self) -> Role:
        """What its names, else those of its dataset, speak of."""
        return named_role(self.loader, *(() if self.dataset is None else (self.dataset,)))

    @property
    def trains(self) -> bool:
        """Whether a loop in sight learns from it."""
        return Role.TRAIN in self.uses


def _drawing_runs(story: Story) -> dict[int, list[LoopRun]]:
    """The innermost loops in which `next` takes a batch of a loader, by the loader's identity."""
    found: dict[int, list[LoopRun]] = {}
    for event in story.index.named("builtins.next"):
        source = source_of(event.args[0]) if event.args else None
        if source is not None and is_loader(source) and event.loops:
            found.setdefault(id(source), []).append(event.loops[-1])
    return found


def feeds(story: Story) -> list[Feed]:
    """Return the loaders that a story makes, in order; each place once."""
    return story.recall(_feeds)


def _feeds(story: Story) -> list[Feed]:
    examples = {id(x.loader): x for x in story.execution.examples}
    found: dict[int, Feed] = {}
    for event in story.events:
        value = event.result
        if isinstance(value, Result) and is_loader(value) and value.site is event.site:
            found.setdefault(id(value), Feed(story, value, examples.get(id(value))))
    return list(found.values())


def _is_none(value: Value) -> bool:
    return isinstance(value, Known) and value.value is None


def _is_over(over: Value | None, loader: Value) -> bool:
    """Tell whether a loop goes over a loader, be it through wrappers or one of several."""
    if over is None:
        return False
    source = source_of(over)
    if isinstance(source, Result) and source.maker in ("builtins.zip", "builtins.enumerate"):
        return any(_is_over(a, loader) for a in source.args)
    return any(option is loader for option in options_of(source))


def loop_runs(story: Story) -> list[LoopRun]:
    """Return every run of every loop: one statement runs anew for each call of its function."""
    return story.recall(_loop_runs)


def _loop_runs(story: Story) -> list[LoopRun]:
    found: dict[int, LoopRun] = {}
    for event in story.events:
        for run in event.loops:
            found.setdefault(id(run), run)
    return list(found.values())


def deeds_in(story: Story, run: LoopRun) -> list[Deed]:
    """Return what is done to train in one run of a loop."""
    return story.recall(_deeds_by_run).get(id(run), [])


def _deeds_by_run(story: Story) -> dict[int, list[Deed]]:
    found: dict[int, list[Deed]] = {}
    for deed in story.deeds:
        for key in {id(run) for run in deed.event.loops}:
            found.setdefault(key, []).append(deed)
    return found


def use_of(story: Story, run: LoopRun) -> Role:
    """Tell what one run of a loop uses its data for."""
    deeds = deeds_in(story, run)
    if any(d.do in LEARNS for d in deeds):
        return Role.TRAIN
    passes = [d for d in deeds if d.do is Do.FORWARD and not d.event.within]
    if passes and all(d.event.gradients is Answer.NO for d in passes):
        return Role.HELD_OUT
    return Role.UNKNOWN


def named_role(*values: Value) -> Role:
    """Tell what the names of values speak of, the first that speaks of one deciding."""
    for value in values:
        words = {w for n in names_of(value) if (w := phase_word(n))}
        if words:
            return _of_words(words)
    return Role.UNKNOWN


def _of_words(words: set[str]) -> Role:
    if words == {"train"}:
        return Role.TRAIN
    return Role.UNKNOWN if "train" in words else Role.HELD_OUT


def joined_parts(dataset: Value, depth: int = 8) -> Iterator[Value]:
    """Yield what a dataset is joined from, itself last where it is no join: every example of a
    part is an example of the whole."""
    if depth == 0:
        return
    if isinstance(dataset, Result):
        last = dataset.maker.rsplit(".", 1)[-1]
        if dataset.maker in ("operator.add", "operator.iadd"):
            for part in dataset.args:
                yield from joined_parts(part, depth - 1)
            return
        if (last in JOINS or last in STACKS) and dataset.args:
            given = dataset.args if last == "append" else dataset.args[:1]
            for several in given:
                members = several.members if isinstance(several, Items) else [several]
                for part in members:
                    yield from joined_parts(part, depth - 1)
            return
        if last == "TensorDataset":
            yield dataset
            for tensor in dataset.args[:1]:
                yield from joined_parts(tensor, depth - 1)
            return
    yield dataset


def split_from(dataset: Value) -> Value | None:
    """Return the whole that a dataset is a part of; None where it is no part."""
    if isinstance(dataset, Part) and isinstance(dataset.of, Result):
        made = dataset.of
        is_split = made.maker.rsplit(".", 1)[-1] in PARTS
        return made.args[0] if is_split and made.args and isinstance(dataset.key, int) else None
    if isinstance(dataset, Result) and dataset.maker.rsplit(".", 1)[-1] == "Subset":
        return dataset.args[0] if dataset.args else None
    return None


def inside(value: Value, depth: int = 6) -> Iterator[Value]:
    """Yield a value, what it was made from and what its objects hold."""
    pending, seen = [(value, depth)], {id(value)}
    while pending:
        found, left = pending.pop(0)
        yield found
        if left == 0 or len(seen) > 2000:
            continue
        held = [*found.inputs]
        if isinstance(found, (Instance, Items, Table)):
            held += found.fields.values()
        if isinstance(found, Generator):
            held += found.function.scope.names.values()
        for below in held:
            if id(below) not in seen:
                seen.add(id(below))
                pending.append((below, left - 1))


RANK_CALLS = ("get_rank", "get_world_size", "get_node_local_rank", "split_dataset_by_node", "shard")
RANK_VARIABLES = ("RANK", "LOCAL_RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK")
RANKS = ("rank", "world", "shard", "replica", "process_index", "num_processes")


def is_rank(value: Value) -> bool:
    """Tell whether a value is the rank of a process, or their number."""
    if isinstance(value, Result):
        last = value.maker.rsplit(".", 1)[-1]
        keys = [constant(a) for a in value.args[:1]]
        return last in RANK_CALLS or any(isinstance(k, str) and _speaks_of_rank(k) for k in keys)
    is_key = isinstance(value, Part) and isinstance(value.key, str)
    return (is_key or isinstance(value, Unknown)) and any(map(_speaks_of_rank, names_of(value)))


def is_own_rank(value: Value) -> bool:
    """Tell whether a value is the rank of this process, or whether it is the main one."""
    if isinstance(value, Result):
        keys = [constant(a) for a in value.args[:1]]
        is_asked = value.maker.rsplit(".", 1)[-1] in ("get_rank", "get_local_rank")
        return is_asked or any(isinstance(k, str) and k in RANK_VARIABLES for k in keys)
    is_key = isinstance(value, Part) and isinstance(value.key, str)
    words = ("rank", "is_main_process", "is_local_main_process", "is_global_zero")
    is_named = any(n.lower().endswith(words) for n in names_of(value))
    return (is_key or isinstance(value, Unknown)) and is_named


def _speaks_of_rank(name: str) -> bool:
    return any(word in name.lower() for word in RANKS)


def depends_on_rank(value: Value | None) -> bool:
    """Tell whether the rank has a part in a value, or in what its objects hold."""
    return value is not None and any(is_rank(v) for v in inside(value))


GENERATORS = frozenset(
    {"numpy.random.default_rng", "numpy.random.RandomState", "random.Random",
     "numpy.random.Generator", "torch.Generator"}
)  # fmt: skip
SEEDS = frozenset({"seed", "manual_seed", "manual_seed_all", "set_seed", "seed_everything",
                   "set_random_seed", "seed_all", "getstate", "setstate", "get_state", "set_state",
                   "get_rng_state", "set_rng_state", "initial_seed", "spawn"})  # fmt: skip
DRAWS = frozenset(
    {"rand", "randn", "randint", "randperm", "normal", "bernoulli", "multinomial", "rand_like",
     "randn_like", "randint_like", "poisson"}
)  # fmt: skip
DRAWN_IN_PLACE = frozenset({".normal_", ".uniform_", ".random_", ".bernoulli_", ".exponential_",
                            ".bernoulli", ".multinomial"})  # fmt: skip
RANDOM_TRANSFORMS = frozenset(
    {"ColorJitter", "RandAugment", "AutoAugment", "TrivialAugmentWide", "AugMix", "HorizontalFlip",
     "VerticalFlip", "ShiftScaleRotate", "GaussNoise", "GaussianNoise", "Rotate", "Affine",
     "CoarseDropout", "HueSaturationValue", "ElasticTransform"}
)  # fmt: skip
AUGMENTERS = ("torchvision.transforms", "albumentations", "monai.", "kornia.", "torchaudio.",
              "transforms.", "timm.")  # fmt: skip


def is_generator_of_numbers(value: Value | None) -> bool:
    """Tell whether a value is a random generator with a state of its own."""
    return isinstance(value, Result) and value.maker in GENERATORS


def is_draw(value: Value | None) -> bool:
    """Tell whether a value is made of fresh random numbers."""
    if not isinstance(value, Result):
        return False
    home, last = value.maker.rpartition(".")[::2]
    if is_generator_of_numbers(value.receiver):
        return last not in SEEDS
    if value.receiver is not None:
        return value.maker in DRAWN_IN_PLACE
    if home in ("numpy.random", "random"):
        return last not in SEEDS and value.maker not in GENERATORS
    return home == "torch" and last in DRAWS


def random_transform(value: Value) -> bool:
    """Tell whether a value is a transform of a library that changes its input at random."""
    if not isinstance(value, Result) or not value.maker.startswith(AUGMENTERS):
        return False
    last = value.maker.rsplit(".", 1)[-1]
    return last.startswith("Rand") or last in RANDOM_TRANSFORMS


def is_random(value: Value) -> bool:
    """Tell whether random numbers have a part in a value."""
    return any(is_draw(v) or random_transform(v) for v in origins(value))


def draws_in(events: tuple[ProgramEvent, ...]) -> Iterator[ProgramEvent]:
    """Yield the events that draw random numbers."""
    for event in events:
        if is_draw(event.result) and not event.is_own:
            yield event


ARITHMETIC = frozenset({"add", "sub", "mul", "div", "where", "masked_fill", "lerp", "clamp"})
LABELS_MOVED = frozenset({"mask", "masks", "bboxes", "keypoints"})
MOVES = frozenset({"flip", "roll", "rot90", "fliplr", "flipud", "hflip", "vflip", "rotate",
                   "affine", "adjust_brightness", "adjust_contrast"})  # fmt: skip


def disturbed_input(example: Example) -> Value | None:
    """Return what changes the input of an example at random: noise, a random move or transform.

    A draw that only chooses an index (which example, which window) changes nothing, and where the
    target was drawn as well, or is taken from the input, the change is the task.
    """
    value = example.value
    if not isinstance(value, Items) or len(value.fields) < 2:
        return None
    given, *wanted = value.members
    paired = [_paired_transform(v) for v in origins(given)]
    if any(v is not None for v in paired):
        return next(v for v in paired if v is not None)
    fresh = {id(e.result) for e in draws_in(example.events)} - seeded_draws(example.events)
    taken = [v for v in origins(given) if is_stored_item(v)]
    for target in wanted:
        if any(id(v) in fresh or any(is_same(v, t) for t in taken) for v in origins(target)):
            return None
    found = next((v for v in origins(given) if random_transform(v) and v.site is not None), None)
    if found is not None or not fresh:
        return found
    return _changed(given, example.events, fresh)


def _paired_transform(value: Value) -> Value | None:
    """Return the random transform that moves labels with their image: `aug(image=x, mask=y)`."""
    is_call = isinstance(value, Result) and value.maker == "()"
    if not isinstance(value, Result) or not is_call or value.receiver is None:
        return None
    if not LABELS_MOVED & value.kwargs.keys():
        return None
    found = (v for v in origins(value.receiver, 80) if random_transform(v) and v.site is not None)
    return next(found, None)


def seeded_draws(events: tuple[ProgramEvent, ...]) -> set[int]:
    """The draws that the index of the example seeds: they are the same in every epoch."""
    seeds = (e for e in events if e.name.rsplit(".", 1)[-1] in SEEDS and e.receiver is None)
    is_all = any(is_index(v) for e in seeds for a in e.args for v in origins(a, 60))
    drawn = [e.result for e in draws_in(events) if e.result is not None]
    return {id(d) for d in drawn if is_all or _is_seeded_by_index(d)}


def _is_seeded_by_index(draw: Value) -> bool:
    given = (draw.receiver, draw.kwargs.get("generator")) if isinstance(draw, Result) else ()
    return any(is_index(v) for g in given if g is not None for v in origins(g, 60))


def _changed(given: Value, events: tuple[ProgramEvent, ...], fresh: set[int]) -> Value | None:
    """The operation that mixes fresh random numbers into an input, or moves it at random."""
    made = {id(v) for v in origins(given)}

    def is_fresh(value: Value) -> bool:
        return any(id(v) in fresh for v in origins(value, 200))

    for event in events:
        result = event.result
        if result is None or id(result) not in made or event.is_own:
            continue
        name = operation_name(event.name).rsplit(".", 1)[-1]
        is_chosen = any(g.test is not None and is_fresh(g.test) for g in event.guards)
        operands = [*([] if event.receiver is None else [event.receiver]), *event.args]
        drawn = [v for v in operands if is_fresh(v) and not is_stored(v, fresh)]
        is_mixed = bool(drawn) and any(is_stored(v) for v in operands if v not in drawn)
        if name in MOVES | ARITHMETIC and (is_mixed or (is_chosen and is_stored(result))):
            return result
    return None


def is_index(value: Value) -> bool:
    """Tell whether a value is the index by which a loader asks for an example."""
    return isinstance(value, Unknown) and value.name == INDEX


def is_stored_item(value: Value) -> bool:
    """Tell whether a value is an item that a dataset keeps: `self.images[index]`."""
    if isinstance(value, Result) and value.maker == "operator.getitem":
        return any(is_index(v) for v in origins(value.args[1], 40))
    is_out = isinstance(value, Part) and isinstance(value.of, Result) and value.key in (0, 1)
    return is_out and value.of.receiver is None  # type: ignore[attr-defined]


def is_stored(value: Value, but: set[int] | frozenset[int] = frozenset()) -> bool:
    """Tell whether a value is made of what a dataset keeps, not only shaped like it."""
    pending, seen = [value], {id(value)}
    while pending:
        found = pending.pop()
        if is_stored_item(found):
            return True
        for below in () if is_draw(found) or id(found) in but else found.inputs:
            if id(below) not in seen:
                seen.add(id(below))
                pending.append(below)
    return False


# words that say what a value is and nothing of whose it is
PLAIN = frozenset(
    {"transform", "transforms", "tf", "tfs", "tfm", "tfms", "t", "trans", "compose", "composed",
     "preprocess", "preprocessing", "pipeline", "aug", "augment", "augmentation", "data", "set",
     "self", "img", "image", "images", "transformation", "transformations", "augmentations"}
)  # fmt: skip


def subject_of(value: Value) -> set[str]:
    """Return what the names of a value speak of apart from its role: `mnist` of `mnist_train`."""
    words = {w for n in names_of(value) for w in words_of(n)}
    return {w for w in words if not phase_word(w)} - PLAIN


def batch_part(story: Story, value: Value) -> Value:
    """Return what a part of a batch is made of, where its loader's examples are in sight."""
    batch, key = (value.of, value.key) if isinstance(value, Part) else (value, None)
    if not isinstance(batch, Result) or batch.maker != "builtins.next" or not batch.args:
        return value
    loader = source_of(batch.args[0])
    for example in story.execution.examples:
        if example.loader is loader and example.value is not None:
            made = example.value
            return made.fields.get(key, value) if isinstance(made, (Items, Table)) else value
    return value


def data_chain(story: Story, value: Value, depth: int = 40) -> Iterator[Value]:
    """Yield a value and the data that it is a part or another shape of, nearest first."""
    while depth:
        depth -= 1
        yield value
        inner = batch_part(story, whole_tensor(value))
        inner = _cut_from(value) if inner is value else inner
        if inner is value:
            return
        value = inner


def _cut_from(value: Value) -> Value:
    """Return what a value is rows of, or the numbers of; itself where it is neither."""
    if isinstance(value, Result) and value.maker == "operator.getitem":
        return value.args[0]
    if not isinstance(value, Part) or not isinstance(value.of, Result):
        return value
    made, key = value.of, value.key
    if key == "values":
        return made
    is_split = made.maker.rsplit(".", 1)[-1] == "train_test_split"
    is_half = is_split and isinstance(key, int) and key // 2 < len(made.args)
    return made.args[key // 2] if is_half and isinstance(key, int) else value


def data_origins(story: Story, value: Value) -> list[Value]:
    """Return what data are made from; of a batch, only what its own part is made from."""
    steps = [v for v in data_chain(story, value) if batch_part(story, v) is v]
    return [found for step in steps for found in origins(step)]


def model_inputs(story: Story, scores: Value, at: ProgramEvent | None = None) -> list[Value]:
    """Return what the models that made a value were given first.

    Where that happens at an event inside of a model, it is what that model was given.
    """
    if at is not None and at.within:
        passes = story.recall(_passes_by_model).get(id(at.within[0]), ())
        around = [e for e in passes if e.order < at.order]
        return [e.args[0] for e in around[-1:]]
    known = story.recall(_passes_by_output)
    found = {e.order: e for v in origins(scores) for e in known.get(id(v), ())}
    return [event.args[0] for _, event in sorted(found.items())]


def _passes(story: Story) -> list[ProgramEvent]:
    return [d.event for d in story.does(Do.FORWARD) if not d.event.within and d.event.args]


def _passes_by_model(story: Story) -> dict[int, list[ProgramEvent]]:
    found: dict[int, list[ProgramEvent]] = {}
    for event in _passes(story):
        found.setdefault(id(event.receiver), []).append(event)
    return found


def _passes_by_output(story: Story) -> dict[int, list[ProgramEvent]]:
    found: dict[int, list[ProgramEvent]] = {}
    for event in _passes(story):
        several = event.result.members if isinstance(event.result, Items) else []
        for key in {id(v) for v in (event.result, *several)}:
            found.setdefault(key, []).append(event)
    return found


SHUFFLES = frozenset({"shuffle", "permutation", "permuted"})


def loader_behind(value: Value) -> Value | None:
    """Return what a batch, or a part of one, is taken from."""
    batch = value.of if isinstance(value, Part) else value
    is_taken = isinstance(batch, Result) and batch.maker == "builtins.next" and bool(batch.args)
    return source_of(batch.args[0]) if is_taken else None  # type: ignore[attr-defined]
