from traindx.analysis.program.training.claims import (
    each_place,
    finding,
    program_of,
    replace,
    rewrite_statement,
    source_text,
)
from traindx.analysis.program.training.freezing import (
    switches,
    taken_back,
    vain_switches,
)
from traindx.analysis.recordings.observations import processes_of
from traindx.examples import template
from traindx.registry import Findings, Run, detector


@detector(needs=("source",), suggests=("frozen-parameters",))
def check(run: Run) -> Findings:
    """`requires_grad` is mistyped, or set on a module, where it does nothing.

    ## What it detects
    An assignment to `require_grad`, `requires_grads` or their kin on parameters, `requires_grad =
    False` on a module instead of on its parameters, and a freeze that is taken back for all
    parameters of the same model before anything is trained or the model runs.

    ## Why it matters
    Python makes a new attribute and says nothing. What was meant to be frozen trains on (and what
    was meant to train stays frozen).

    ## What to do
    Set `requires_grad` on every parameter, or call `module.requires_grad_(False)`.

    ## When it is wrong
    Turning on what was never off lacks nothing and is left alone, and so is a freeze during which
    the model runs, or is in the hands of code out of sight.
    """
    for off, on in each_place(run, taken_back, lambda found: found[1].event.node):
        names = on.model.names - {"self"} if on.model is not None else set()
        name = min(sorted(names), key=len, default="the model")
        yield finding(
            f"The freeze has no effect: all parameters of `{name}` are turned on again",
            (off.event, "parameters are turned off here"),
            (on.event, "and all are turned on here, before anything is trained"),
            at=on.event,
        )
    for event, value in each_place(run, vain_switches, lambda found: found[0].node):
        if not value or _is_any_frozen(run):
            place = source_text(event).rpartition(".")[0]
            if event.name == "requires_grad":
                claim = f"`requires_grad` on `{place}`, a module, is ignored"
                patch = rewrite_statement(event, f"{place}.requires_grad_({value})")
            else:
                claim = f"`{event.name}` is no attribute of a parameter"
                patch = replace(event, f"{place}.requires_grad")
            yield finding(
                f"The setting has no effect: {claim}",
                (event, f"`{place}.{event.name} = {value}` only makes a new attribute"),
                patch=patch,
            )


def _is_any_frozen(run: Run) -> bool:
    """Parameters train by default: turning on what was never off lacks nothing."""
    models = [m for p in processes_of(run) for m in p.models]
    if models:
        return any(not p.is_trainable for m in models for p in m.parameters)
    return any(s.is_on is not True for story in program_of(run).stories for s in switches(story))


_program = template("""
model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2))
{freeze:}
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
""")
_EACH = "for p in model.parameters():\n    p.{attribute} = False"

_BACK = """
for name, p in model.named_parameters():
    if name.startswith("0."):
        p.requires_grad = False
{between}
decayed = []
for name, p in model.named_parameters():
    {on}
    decayed.append(p)
"""


def _back(on: str = "p.requires_grad = True", between: str = "") -> Run:
    return _program(_BACK.format(on=on, between=between))


FIRES = {
    "taken back": _back(),
    "taken back after a look": _back(between="print(model)\nmodel.cuda()"),
    "mistyped": _program(_EACH.format(attribute="require_grad")),
    "letters astray": _program(_EACH.format(attribute="requeires_grad")),
    "plural": _program(_EACH.format(attribute="requires_grads")),
    "on the module": _program("model.requires_grad = False"),
    "turned on in vain": _program(
        f"model.requires_grad_(False)\n{_EACH.format(attribute='require_grad')}".replace(
            "= False", "= True"
        )
    ),
    "on the children": _program("for c in model.children():\n    c.requires_grad = False"),
}

SILENT = {
    "near miss: a freeze that stays": _back(on="pass"),
    "near miss: frozen while it runs": _back(between="x_adv = perturb(model, x, y)"),
    "near miss: frozen while a part of another object": _back(
        between="attack = Attack(model)\nx_adv = attack(x, y)"
    ),
    "near miss: frozen for the body of a with": _program(
        "def frozen(model):\n"
        "    for p in model.parameters():\n        p.requires_grad = False\n"
        "    yield\n"
        "    for p in model.parameters():\n        p.requires_grad = True"
    ),
    "near miss: frozen anew": _program(
        f"{_BACK.format(on='p.requires_grad = True', between='')}\nmodel[1].requires_grad_(False)"
    ),
    "near miss: unfrozen after a first stage": _back(between="train(model, epochs=3)"),
    "on the parameters": _program(_EACH.format(attribute="requires_grad")),
    "near miss: mistyped, but nothing was ever off": _program(
        _EACH.format(attribute="require_grad").replace("= False", "= True")
    ),
    "near miss: another flag": _program(_EACH.format(attribute="retains_grad")),
    "near miss: the method": _program("model.requires_grad_(False)"),
    "near miss: a parameter of its own": _program(
        "scale = nn.Parameter(torch.ones(1))\nscale.requires_grad = False"
    ),
}
