import numpy as np

from traindx.analysis.metrics.scores import forgotten_task, is_lost_for_sure
from traindx.examples import make_run
from traindx.model.metric_names import HIGHER_IS_BETTER, kind_of
from traindx.model.run import Floats, Series
from traindx.registry import Finding, Findings, Run, Strength, cite, detector, finding

ENOUGH = 6  # evaluations
FEW = 8  # tasks; of more parts of one test, some fall while others rise
TASKS = HIGHER_IS_BETTER - {"reward", "score", "correlation", "psnr", "ssim", "precision"}
PREFERENCES = ("reward", "chosen", "rejected", "margin", "logps", "logits")


@detector(needs=("accuracy/*/*|f1/*/*|map/*/*",), suggests=("catastrophic-forgetting",))
def check(run: Run) -> Findings:
    """One task's metric falls far from its best while another task's rises.

    ## What it detects
    Among metrics of one kind that are logged per task or data set: one that lost a third of its
    best value after it had been reached, while another gained as much in the same time.

    ## Why it matters
    Training on the new data overwrites what the old data taught.

    ## What to do
    Mix old data in, lower the learning rate, freeze shared layers, or regularise towards the old
    weights.

    ## When it is wrong
    Metrics of different classes trade off by a threshold; parts that are named as classes are left
    out, and so are the rewards and margins of preference tuning. Of many parts with few examples
    each some always fall: then a third of them has to.
    """
    if run.has("reward/*"):
        return  # two players, or a policy and its critic: what one wins the other loses
    groups: dict[str, list[Series]] = {}
    for name in run.series:
        kind, _, rest = name.partition("/")
        part = rest.partition("/")[2]
        series = run.get(name)
        is_task = bool(part) and "@" not in part and not part.startswith(("class", "top"))
        is_task &= not any(word in name for word in PREFERENCES)
        is_judged = kind_of(name) in TASKS and is_task
        if is_judged and series is not None and len(series.finite()) >= ENOUGH:
            groups.setdefault(f"{kind}/{rest.partition('/')[0]}", []).append(series.finite())
    for tasks in groups.values():
        pair = forgotten_task(tasks)
        if pair is not None and is_lost_for_sure(pair[0].values, tasks, FEW):
            yield _finding(*pair)
            return


def _finding(old: Series, top: int, new: Series) -> Finding:
    best, end = float(old.values[top]), old.last
    return finding(
        f"The task of {old.origin.name} is forgotten from {old.when(top)} on, while "
        f"{new.origin.name} improves",
        {"catastrophic-forgetting": Strength.STRONG},
        cite(old, f"{old.origin.name} fell from {best:.3g} to {end:.3g}", top, -1, best=best),
        cite(new, f"{new.origin.name} rose to {new.last:.3g}", -1, end=new.last),
    )


def _run(first: Floats, second: Floats) -> Run:
    return make_run({"accuracy/val/task1": first, "accuracy/val/task2": second})


_LEARNT = np.concatenate([np.linspace(0.1, 0.9, 10), np.full(10, 0.9)])
_FORGOTTEN = np.concatenate([np.linspace(0.1, 0.9, 10), np.linspace(0.8, 0.2, 10)])
_LATER = np.concatenate([np.full(10, 0.1), np.linspace(0.2, 0.9, 10)])

FIRES = {"one task after another": _run(_FORGOTTEN, _LATER)}

_FEW = np.random.default_rng(0).integers(0, 3, 20) / 2.0
_ENTITIES = {f"accuracy/val/site{i}": np.roll(_LEARNT, 3 * i) for i in range(11)}

SILENT = {
    "near miss: a handful of examples": _run(np.append(np.sort(_FEW), [0.5, 0, 0, 0]), _LATER),
    "near miss: one of a dozen": make_run({**_ENTITIES, "accuracy/val/site11": _FORGOTTEN}),
    "near miss: preference tuning": make_run(
        {"accuracy/train/rewards/rejected": _FORGOTTEN, "accuracy/train/rewards/margins": _LATER}
    ),
    "both kept": _run(_LEARNT, _LATER),
    "near miss: both fall, a divergence": _run(_FORGOTTEN, np.linspace(0.9, 0.1, 20)),
}
