from traindx.analysis.program.training.checkpoints import Kept, kept_by_reference
from traindx.analysis.program.training.claims import finding, imports, replace, source_text
from traindx.analysis.program.training.program import each_place
from traindx.examples import script, template
from traindx.registry import Findings, Run, detector


@detector(needs=("source",), suggests=("best-weights-overwritten",))
def check(run: Run) -> Findings:
    """The state of the best epoch is kept without a copy, and restored at the end.

    ## What it detects
    In a training loop, under a condition, the tensors of the model are kept without a copy
    (`model.state_dict()`, a dictionary of `v.detach()`, the model itself under a name of the best),
    and what was kept is used behind the loop: loaded into a model, saved or returned.

    ## Why it matters
    The dictionary holds the very tensors that the optimizer goes on changing. At the end it is the
    last model, and the best one is lost without any error.

    ## What to do
    `copy.deepcopy(model.state_dict())`, or save it to a file at once.

    ## When it is wrong
    Where the loop ends as soon as the state was kept there is nothing to overwrite it; such loops
    are left alone, and so are those that make or take a model in every turn (a search, folds), a
    state that is written to a file within the loop, what a sharded model gathers (FSDP), and the
    state of a scheduler or scaler, which is made of numbers.
    """
    for kept in each_place(run, kept_by_reference, lambda found: found.site.node):
        yield finding(
            f"`{kept.name}` is not a copy: training goes on and changes it to the last model",
            (kept.site, "these are the model's own tensors, not a copy"),
            (kept.trains_on, "and the loop goes on training them"),
            patch=_patch(kept),
            is_symptom=False,
        )


def _patch(kept: Kept) -> str | None:
    if not imports(kept.site, "copy") or kept.value is kept.model or kept.value.site is None:
        return None
    return replace(kept.value, f"copy.deepcopy({source_text(kept.value)})")


_loop = template("""
import copy

def train(model, loader, validate):
    optimizer = torch.optim.Adam(model.parameters())
    best, best_state = 0.0, None
    for epoch in range(9):
        for x, y in loader:
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
        score = validate(model)
        if score > best:
            best = score
            {keep:}
    {end:model.load_state_dict(best_state)}
    return model
""")
_stopper = template("""
class EarlyStopping:
    def __init__(self):
        self.best, self.weights = float("inf"), None

    def see(self, net, score):
        if score < self.best:
            self.best = score
            self.weights = {kept:}

    def put_back(self, net):
        net.load_state_dict(self.weights)

def fit(net, loader, evaluate):
    optimizer = torch.optim.Adam(net.parameters())
    stopper = EarlyStopping()
    for epoch in range(9):
        for x, y in loader:
            optimizer.zero_grad()
            torch.nn.functional.mse_loss(net(x), y).backward()
            optimizer.step()
        stopper.see(net, evaluate(net))
    stopper.put_back(net)
""")

FIRES = {
    "detached tensors, in an object": _stopper(
        "{k: v.detach() for k, v in net.state_dict().items()}"
    ),
    "the model itself": _loop("best_state = model", "model = best_state"),
    "restored at the end": _loop("best_state = model.state_dict()"),
    "saved at the end": _loop("best_state = model.state_dict()", 'torch.save(best_state, "b.pt")'),
}

_SEARCH = """
best, best_state = 0.0, None
for rate in (0.1, 0.01):
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=rate)
    for x, y in loader:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    if validate(model) > best:
        best_state = model.state_dict()
torch.save(best_state, "best.pt")
"""

_CANDIDATES = _SEARCH.replace(
    "for rate in (0.1, 0.01):\n    model = Net()\n", "for rate, model in rated.items():\n"
)

SILENT = {
    "cloned tensors, in an object": _stopper(
        "{k: v.detach().clone() for k, v in net.state_dict().items()}"
    ),
    "near miss: a model for every turn": script(_SEARCH),
    "near miss: every turn takes another model": script(_CANDIDATES),
    "near miss: gathered from shards": _loop("""\
with FSDP.state_dict_type(model, StateDictType.FULL_STATE_DICT):
                best_state = model.state_dict()"""),
    "near miss: copied in the next line": _loop(
        "best_state = model.state_dict()\n            best_state = copy.deepcopy(best_state)"
    ),
    "near miss: a scheduler's state is numbers": _loop(
        "best_state = scheduler.state_dict()", "scheduler.load_state_dict(best_state)"
    ),
    "a copy": _loop("best_state = copy.deepcopy(model.state_dict())"),
    "near miss: copied tensor by tensor": _loop(
        "best_state = {k: v.clone() for k, v in model.state_dict().items()}"
    ),
    "near miss: written at once": _loop(
        'best_state = model.state_dict(); torch.save(best_state, "b.pt")'
    ),
    "near miss: never used behind the loop": _loop("best_state = model.state_dict()", "pass"),
}
