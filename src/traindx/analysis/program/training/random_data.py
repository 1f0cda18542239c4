"""Held-out data that pass through a random transform."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from traindx.analysis.program.execution.values import (
    Instance,
    PartialCall,
    Result,
    Value,
    origins,
)
from traindx.analysis.program.training.augmentation import is_added_for_training
from traindx.analysis.program.training.data import (
    AUGMENTERS,
    Feed,
    Role,
    disturbed_input,
    feeds,
    named_role,
    random_transform,
    split_from,
)
from traindx.analysis.program.training.disturbed_batches import disturbed_batch
from traindx.analysis.program.training.kinds import names_of
from traindx.analysis.program.training.phases import phase_word

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Story


@dataclass(frozen=True, eq=False)
class RandomData:
    """A random change that held-out data go through, and what they are used as."""

    change: Value
    says: str  # what goes through it, up to its name
    used: Value | None = None

    @property
    def name(self) -> str:
        """The transform; for the program's own code there is none."""
        maker = self.change.maker if isinstance(self.change, Result) else ""
        return maker.rsplit(".", 1)[-1] if random_transform(self.change) else "a random change"

    @property
    def place(self) -> Value:
        return self.change if self.used is None else self.used


def random_held_out_data(story: Story) -> Iterator[RandomData]:
    """Yield the random changes of loaders, datasets and transforms for held-out data."""
    yield from _loaded(story)
    yield from _transformed(story)
    yield from _composed(story)


def _loaded(story: Story) -> Iterator[RandomData]:
    """Loaders whose batches are disturbed."""
    for feed in feeds(story):
        held = [v for v in (feed.loader, feed.dataset) if v is not None]
        if feed.role is not Role.HELD_OUT or any(map(_speaks_of_tta, held)):
            continue
        found = None if feed.example is None else disturbed_input(feed.example)
        if found is None and feed.example is not None:
            found = disturbed_batch(feed.example)
        found = _split_transform(story, feed) if found is None else found
        if found is None or found.site is None:
            continue
        if not is_added_for_training(story, found):
            yield RandomData(found, f"the batches of `{feed.name}` pass through", feed.loader)


def _split_transform(story: Story, feed: Feed) -> Value | None:
    """The random transform of a dataset of which held-out data are a part."""
    whole = None if feed.dataset is None else split_from(feed.dataset)
    if not isinstance(whole, Result) or any(e.name == "transform" for e in story.events):
        return None
    given = [v for v in (*whole.args, whole.kwargs.get("transform")) if v is not None]
    return next((t for v in given if (t := _random_in(story, v)) is not None), None)


def _speaks_of_tta(value: Value) -> bool:
    return any("tta" in name.lower() for name in names_of(value))


def _transformed(story: Story) -> Iterator[RandomData]:
    """Datasets named for held-out data that have a random transform."""
    for event in story.events:
        made, given = event.result, event.kwargs.get("transform")
        is_made = isinstance(made, (Result, Instance)) and made.site is event.site
        if given is None or made is None or not is_made or _speaks_of_tta(made):
            continue
        found = _random_in(story, given)
        is_for_training = named_role(given) is Role.TRAIN
        if found is not None and named_role(made) is Role.HELD_OUT and not is_for_training:
            yield RandomData(found, f"`{made.called()}` passes through", made)


def _composed(story: Story) -> Iterator[RandomData]:
    """Compositions that go by a name for held-out data."""
    for event in story.events:
        made = event.result
        is_made = isinstance(made, Result) and made.site is event.site
        if not is_made or made is None or not event.name.endswith(".Compose"):
            continue
        held = [n for n in names_of(made) if phase_word(n) in ("validation", "test")]
        found = _random_in(story, made)
        if found is not None and held and not any("tta" in n.lower() for n in held):
            yield RandomData(found, f"`{held[0]}` holds")


def _random_in(story: Story, transform: Value) -> Value | None:
    """The random transform of a library inside a composition, in whatever phase."""
    if isinstance(transform, (Instance, PartialCall)):
        return None
    if not isinstance(transform, Result) or not transform.maker.startswith(AUGMENTERS):
        return None
    found = [v for v in origins(transform, 80) if random_transform(v)]
    return next((v for v in found if not is_added_for_training(story, v)), None)
