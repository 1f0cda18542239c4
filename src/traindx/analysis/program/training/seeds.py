"""Randomness: which generators a program seeds, for what, and from which it draws."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from traindx.analysis.program.execution.events import EventForm, ProgramEvent
from traindx.analysis.program.execution.values import (
    Answer,
    External,
    FunctionValue,
    Result,
    Site,
    Unknown,
    Value,
    constant,
    origins,
)
from traindx.analysis.program.training.acts import Do
from traindx.analysis.program.training.layers import has_weights, is_layer
from traindx.analysis.program.training.phases import phase_word

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Program, Story

CUDNN = "torch.backends.cudnn"
SEEDERS = {"torch.manual_seed": "torch", "torch.random.manual_seed": "torch",
           "torch.cuda.manual_seed": "torch", "torch.cuda.manual_seed_all": "torch",
           "torch.seed": "torch", "numpy.random.seed": "numpy", "random.seed": "random",
           "torch.set_rng_state": "torch", "torch.Generator": "torch",
           "torch.random.seed": "torch"}  # fmt: skip
EVERYTHING = re.compile(r"(?:^|[._])(?:seed_everything|set_seed|seed_all|fix_seed|setup_seed)$")
# frameworks that seed torch themselves, and what may import anything
FRAMEWORKS = ("TrainingArguments", "import_module")
DRAWS = frozenset(
    {"rand", "randn", "randint", "shuffle", "permutation", "choice", "choices", "sample",
     "uniform", "normal", "random", "randrange"}
)  # fmt: skip
ORDERED = {"numpy.random.permutation": "numpy", "numpy.random.shuffle": "numpy",
           "random.shuffle": "random", "random.sample": "random", "torch.randperm": "torch",
           "torch.utils.data.random_split": "torch"}  # fmt: skip
OWN_GENERATORS = frozenset(
    {"numpy.random.default_rng", "numpy.random.RandomState", "random.Random"}
)
# what is seeded for itself: what it draws says nothing about the weights
PARTS = re.compile(r"Dataset|Env$|Environment|Sampler|Loader|Transform|Simulator")
VARIES = re.compile(r"initial_seed|get_worker_info|^torch\.|^time\.|urandom|SeedSequence")


def called(event: ProgramEvent) -> str:
    """Return the dotted name of what is called, also of a function that nobody binds."""
    if event.name == "()" and isinstance(event.receiver, (Unknown, External)):
        return event.receiver.name
    return event.name


def seeded(event: ProgramEvent) -> str:
    """Return which generator an event seeds: torch, numpy, random or all; empty where none."""
    name = called(event)
    if not event.is_own and EVERYTHING.search(name):
        return "all"
    return "torch" if name.endswith(FRAMEWORKS) else SEEDERS.get(name, "")


def drawn(event: ProgramEvent) -> str:
    """Return from which global generator an event draws: numpy or random; empty where none."""
    home, _, last = event.name.rpartition(".")
    if last not in DRAWS:
        return ""
    return {"numpy.random": "numpy", "random": "random"}.get(home, "")


def unseeded_draws(story: Story) -> Iterator[tuple[ProgramEvent, str]]:
    """Yield what draws without a seed in a story that seeds torch, and from which generator.

    What a dataset, an environment or a worker draws for itself is left out, as is what is drawn
    for an evaluation.
    """
    seeds = {seeded(e) for e in story.events}
    if not {"torch", "all"} & seeds:
        return
    for event in story.events:
        library = drawn(event) or _drawn_by_split(event)
        if library and not {library, "all"} & seeds and not _is_inside_a_part(story, event):
            yield event, library
        elif event.name in OWN_GENERATORS and not (event.args or event.kwargs):
            yield event, "a generator without a seed"


def early_draws(story: Story) -> Iterator[tuple[ProgramEvent, ProgramEvent]]:
    """Yield what is drawn before its generator is seeded for the first time, and that seed.

    Orders, splits and arrays count; a single number may be a port or a name.
    """
    learns = min((d.event.order for d in story.does(Do.BACKWARD)), default=0)
    first: dict[str, ProgramEvent] = {}
    for event in story.events:
        library = seeded(event)
        is_own = called(event).endswith(("torch.Generator", *FRAMEWORKS))  # no global one
        if library and not is_own and event.order < learns:
            first.setdefault(library, event)
    for event in story.events if first else ():
        library = _data_drawn(event) or _weights_drawn(story, event, first)
        seeds = [first[name] for name in (library, "all") if name in first]
        seed = min(seeds, key=lambda seed: seed.order, default=None) if library else None
        if seed is None or event.order > seed.order or _is_inside_a_part(story, event):
            continue
        if not event.guards and not seed.guards:
            yield event, seed


def _weights_drawn(story: Story, event: ProgramEvent, first: dict[str, ProgramEvent]) -> str:
    """Return "torch" where a layer gets its first weights, in a program that seeds all it has.

    Who seeds torch alone behind the model may mean the data.
    """
    made, seed = event.result, first.get("torch")
    is_layer_made = isinstance(made, Result) and made.site is event.site and is_layer(made)
    if not is_layer_made or made is None or has_weights(made) is not Answer.YES:
        return ""
    kin = [e for name, e in first.items() if name in ("numpy", "random")]
    is_all = seed is not None and any(e.function is seed.function for e in kin)
    return "torch" if is_all or "all" in first else ""


def _data_drawn(event: ProgramEvent) -> str:
    """Return from which global generator an event draws an order, a split or an array."""
    home, _, last = event.name.rpartition(".")
    if "generator" in event.kwargs or event.is_own:
        return ""
    if _drawn_by_split(event) or (event.name in ORDERED and "random_state" not in event.kwargs):
        return ORDERED.get(event.name, "numpy")
    is_array = last in ("rand", "randn", "normal", "uniform") and bool(event.args)
    return {"numpy.random": "numpy", "torch": "torch"}.get(home, "") if is_array else ""


def _drawn_by_split(event: ProgramEvent) -> str:
    """scikit-learn draws from NumPy's generator, unless it is given a state."""
    last = event.name.rsplit(".", 1)[-1]
    is_split = event.name.startswith("sklearn.") and last in ("train_test_split", "shuffle")
    if not is_split or "random_state" in event.kwargs or "**" in event.kwargs:
        return ""
    return "" if constant(event.kwargs.get("shuffle")) is False else "numpy"


def trains(story: Story) -> bool:
    """Tell whether a story computes gradients."""
    return bool(story.does(Do.BACKWARD))


def seeded_together(story: Story) -> Iterator[tuple[ProgramEvent, ProgramEvent]]:
    """Yield where Python and NumPy are seeded with one value, for a whole run to repeat."""
    libraries = ("random", "numpy")  # asked first: to tell what it is for takes longer
    seeds = [e for e in story.events if e.args and seeded(e) in libraries]
    seeds = [e for e in seeds if not _is_for_a_part(story, e)]
    for python in (e for e in seeds if seeded(e) == "random"):
        for numpy in (e for e in seeds if seeded(e) == "numpy"):
            is_one = python.function is numpy.function
            if is_one and _is_same(python.args[0], numpy.args[0]):
                yield python, numpy


def _is_same(first: Value, second: Value) -> bool:
    known = constant(first)
    return first is second or (known is not None and known == constant(second))


def _is_for_a_part(story: Story, event: ProgramEvent) -> bool:
    """Tell whether a worker, a dataset or an evaluation is seeded, or each run differently."""
    if _is_inside_a_part(story, event):
        return True
    made = (v for v in origins(event.args[0], 40) if isinstance(v, Result))
    return any(VARIES.search(v.maker) for v in made)


def _is_inside_a_part(story: Story, event: ProgramEvent) -> bool:
    """Tell whether something happens in a worker, a dataset, an environment or an evaluation."""
    module, cls = event.module, event.module.class_of(event.node)
    bases = [] if cls is None else [module.qualified(b) or "" for b in cls.bases]
    if cls is not None and PARTS.search(" ".join([cls.name, *bases])):
        return True
    function = event.function
    word = phase_word(getattr(function, "name", ""))
    is_worker = function is not None and function in _workers(story.program)
    return is_worker or word in ("validation", "test")


def _workers(program: Program) -> set[object]:
    """The functions that start the workers of a loader."""
    events = (e for s in program.stories for e in s.events if "worker_init_fn" in e.kwargs)
    given = (e.kwargs["worker_init_fn"] for e in events)
    return {v.node for g in given for v in origins(g, 10) if isinstance(v, FunctionValue)}


def idle_seeders(program: Program) -> Iterator[tuple[str, Site]]:
    """Yield what is there to seed torch and is never called, in scripts that train."""
    events = [e for s in program.stories for e in s.events]
    given = {v.name for e in events for v in e.args if isinstance(v, External)}
    names = {called(e) for e in events} | given
    scripts = {
        s.execution.module for s in program.stories if not s.execution.function and trains(s)
    }
    for story in program.stories:
        function, module = story.execution.function, story.execution.module
        if function is not None and module in scripts and module.class_of(function) is None:
            own = [e for e in story.events if seeded(e) == "torch" and e.function is function]
            if own and not trains(story):
                yield function.name, Site(module, function)
    for module in scripts:
        for node in ast.walk(module.tree):
            for item in node.names if isinstance(node, ast.ImportFrom) else ():
                dotted = module.aliases.get(item.asname or item.name, "")
                if EVERYTHING.search(item.name) and dotted not in names:
                    yield item.asname or item.name, Site(module, node)


def seeded_without_torch(program: Program) -> tuple[ProgramEvent, ProgramEvent] | None:
    """Return where Python and NumPy are seeded together, in a program that seeds no torch."""
    stories = program.stories
    if any(_seeds_torch(e) for s in stories for e in s.events) or not any(map(trains, stories)):
        return None
    return next((pair for s in stories for pair in seeded_together(s)), None)


def uncalled_seeder(program: Program) -> tuple[str, Site] | None:
    """Return what a program has to seed everything and does not call, where nothing else seeds."""
    idle = list(idle_seeders(program))
    unused = {site.node for _, site in idle}
    events = (e for s in program.stories for e in s.events)
    is_seeded = any(_seeds_torch(e) and e.function not in unused for e in events)
    return idle[0] if idle and not is_seeded else None


def _seeds_torch(event: ProgramEvent) -> bool:
    return seeded(event) in ("torch", "all")


def _sets(event: ProgramEvent, attribute: str) -> bool:
    owner = event.receiver
    is_cudnn = isinstance(owner, External) and owner.name == CUDNN
    return event.act is EventForm.STORE and is_cudnn and event.name == attribute


def _asks_determinism(event: ProgramEvent) -> bool:
    is_call = event.name == "torch.use_deterministic_algorithms" and bool(event.args)
    return (is_call or _sets(event, "deterministic")) and constant(event.args[0]) is True


def timed_algorithms(story: Story) -> Iterator[ProgramEvent]:
    """Yield where cuDNN is told for good to choose by timing, if determinism is asked for too."""
    plain = [e for e in story.events if not e.guards]
    states = [e for e in plain if _sets(e, "benchmark")]
    is_on = bool(states) and constant(states[-1].args[0]) is True
    if is_on and any(_asks_determinism(e) for e in plain):
        yield states[-1]
