"""Training and validation data are normalised differently."""

from collections.abc import Iterator

from traindx.analysis.program.execution.events import ProgramEvent
from traindx.analysis.program.execution.values import (
    Instance,
    Items,
    Result,
    Value,
    constant,
)
from traindx.analysis.program.training.claims import cite, finding, source_text
from traindx.analysis.program.training.data import Role, feeds, named_role, subject_of
from traindx.analysis.program.training.program import Story, program_of
from traindx.examples import make_run
from traindx.model.findings import Finding
from traindx.registry import Findings, Run, detector

CLOSE = 0.01  # rounded otherwise, not another normalisation
Numbers = list[list[float]]
Pair = tuple[Result, Result]


@detector(needs=("source",), suggests=("preprocessing-mismatch",))
def check(run: Run) -> Findings:
    """The transforms of training and validation normalise with other numbers, or one not at all.

    ## What it detects
    Two compositions of torchvision transforms, one that training data pass through and one that
    held-out data do (by the loaders that read them, else by their names), whose `Normalize` differs
    in its numbers or is there in training only.

    ## Why it matters
    The model sees shifted inputs in validation: a gap that no regularisation closes.

    ## What to do
    Use one `normalize = transforms.Normalize(mean, std)` in both.

    ## When it is wrong
    Numbers that are computed, and compositions that are joined from parts, are not compared, and
    neither are the transforms of different datasets or inputs, which their names tell apart.
    """
    seen: set[object] = set()
    for story in program_of(run).stories:
        for train, held in (*_by_use(story), *_by_name(story)):
            if train is held or held.site is None or held.site.node in seen:
                continue
            found = _compare(train, held)
            if found is not None:
                seen.add(held.site.node)
                yield found


def _by_use(story: Story) -> Iterator[Pair]:
    """The compositions of the loaders of one dataset's kind that train and evaluate."""
    found = feeds(story)
    for train in found:
        for held in found:
            if not train.trains or held.role is not Role.HELD_OUT:
                continue
            kinds = [_made_by(f.dataset) for f in (train, held)]
            pair = [_transform(f.dataset) for f in (train, held)]
            if kinds[0] == kinds[1] and pair[0] is not None and pair[1] is not None:
                yield pair[0], pair[1]


def _made_by(dataset: Value | None) -> object:
    if isinstance(dataset, Instance):
        return dataset.cls.node
    return dataset.maker if isinstance(dataset, Result) else dataset


def _transform(dataset: Value | None) -> Result | None:
    """The composition that the examples of a dataset pass through."""
    if isinstance(dataset, Result):
        given = dataset.kwargs.get("transform")
    elif isinstance(dataset, Instance):
        held = [v for v in dataset.fields.values() if _is_composition(v)]
        given = held[0] if len(held) == 1 else None
    else:
        given = None
    return given if isinstance(given, Result) and _is_composition(given) else None


def _by_name(story: Story) -> Iterator[Pair]:
    """Compositions that are named for training and for held-out data, and otherwise alike."""
    made = [e for e in story.events if e.result is not None and _is_composition(e.result)]
    for held in made:
        if held.result is None or named_role(held.result) is not Role.HELD_OUT:
            continue
        for train in made:
            first, second = train.result, held.result
            is_pair = first is not None and named_role(first) is Role.TRAIN
            if not is_pair or not _is_same_branch(train, held):
                continue
            is_made = isinstance(first, Result) and isinstance(second, Result)
            if is_made and subject_of(first) == subject_of(second):  # type: ignore[arg-type]
                yield first, second  # type: ignore[misc]


def _is_same_branch(one: ProgramEvent, other: ProgramEvent) -> bool:
    """Tell whether two things are done under the same conditions: others are for other data."""
    sides = [[(g.site.node, g.holds) for g in event.guards] for event in (one, other)]
    return sides[0] == sides[1]


def _is_composition(value: Value) -> bool:
    is_made = isinstance(value, Result) and value.receiver is None
    return is_made and value.maker.rsplit(".", 1)[-1] == "Compose"  # type: ignore[attr-defined]


def _compare(train: Result, held: Result) -> Finding | None:
    first, second = _normalize(train), _normalize(held)
    numbers = None if first is None else _numbers(first)
    other = None if second is None else _numbers(second)
    if first is None or numbers is None or (second is not None and other is None):
        return None
    if second is None and not _is_whole(held):
        return None
    if other is not None and _are_close(numbers, other):
        return None
    how = "does not normalise" if second is None else f"uses {source_text(second)}"
    names = [v.called("the transform") for v in (train, held)]
    return finding(
        f"`{names[0]}` and `{names[1]}` normalise differently: the second {how}",
        "preprocessing-mismatch",
        second or held,
        cite(first, f"training: {source_text(first)}"),
        cite(second or held, f"held-out data: {how}"),
        is_symptom=True,
    )


def _steps(composed: Result) -> list[Value] | None:
    """The transforms of a composition; None where some are out of sight."""
    given = composed.args[0] if composed.args else composed.kwargs.get("transforms")
    return given.members if isinstance(given, Items) and given.is_whole else None


def _normalize(composed: Result) -> Result | None:
    for step in _steps(composed) or []:
        if isinstance(step, Result) and step.maker.rsplit(".", 1)[-1] == "Normalize":
            return step
    return None


def _is_whole(composed: Result) -> bool:
    """Tell whether every step of a composition is a library's, and it ends in a tensor."""
    steps = _steps(composed)
    makers = [s.maker for s in steps or [] if isinstance(s, Result)]
    is_seen = steps is not None and len(makers) == len(steps)
    is_known = is_seen and all(n.startswith(("torchvision.", "torch.nn.")) for n in makers)
    return is_known and any(n.endswith((".ToTensor", ".ToDtype")) for n in makers)


def _numbers(made: Result) -> Numbers | None:
    """The mean and the deviation, one number each where all channels have the same."""
    given = {**dict(zip(("mean", "std"), made.args, strict=False)), **made.kwargs}
    rows = [_row(given.get(name)) for name in ("mean", "std")]
    found = [r for r in rows if r]
    return found if len(found) == 2 else None


def _row(value: Value | None) -> list[float]:
    members = value.members if isinstance(value, Items) else [] if value is None else [value]
    found = [constant(v) for v in members]
    numbers = [float(x) for x in found if isinstance(x, (int, float))]
    if len(numbers) != len(found):
        return []
    return numbers[:1] if len(set(numbers)) == 1 else numbers


def _are_close(one: Numbers, other: Numbers) -> bool:
    if [len(r) for r in one] != [len(r) for r in other]:
        return False
    pairs = (p for a, b in zip(one, other, strict=True) for p in zip(a, b, strict=True))
    return all(abs(a - b) <= CLOSE for a, b in pairs)


_PROGRAM = """
from torchvision import transforms

train_transform = transforms.Compose([
    transforms.RandomHorizontalFlip(),
    transforms.ToTensor(),
    transforms.Normalize({train}),
])
val_transform = transforms.Compose([transforms.ToTensor(){val}])
"""


def _program(val: str, train: str = "(0.5,), (0.5,)") -> Run:
    return make_run(sources={"train.py": _PROGRAM.format(train=train, val=val)})


def _renamed(val: str) -> Run:
    text = _PROGRAM.format(train="(0.5,), (0.5,)", val=", transforms.Normalize((0.25,), (0.38,))")
    return make_run(sources={"train.py": text.replace("val_transform", val)})


FIRES = {
    "under another word": _renamed("test_tfm"),
    "other numbers": _program(", transforms.Normalize((0.1307,), (0.3081,))"),
    "not at all": _program(""),
}

SILENT = {
    "near miss: the same for all channels": _program(
        ", transforms.Normalize(std=[0.5, 0.5, 0.5], mean=[0.5, 0.5, 0.5])"
    ),
    "near miss: rounded otherwise": _program(", transforms.Normalize((0.4999,), (0.5001,))"),
    "near miss: of another dataset": _renamed("usps_test_transform"),
    "near miss: in another branch": _renamed("if is_usps:\n    val_transform"),
    "the same": _program(", transforms.Normalize((0.5,), (0.5,))"),
    "near miss: the same as lists": _program(", transforms.Normalize([0.5], [0.5])"),
    "near miss: computed": _program(", transforms.Normalize(mean, std)"),
}
