from traindx.analysis.program.training.claims import each_place, finding
from traindx.analysis.program.training.ownership import collected_in_vain
from traindx.examples import script, template
from traindx.registry import Findings, Run, detector


@detector(needs=("source",), suggests=("parameters-not-in-optimizer",))
def check(run: Run) -> Findings:
    """A parameter group is filled and then forgotten.

    ## What it detects
    Parameters of a model that are collected in a list, or in the `params` of a group, which nothing
    reads afterwards, while another list that is filled alike is given to an optimizer.

    ## Why it matters
    The layers of that group are in no optimizer. They keep their first weights, the rest of the
    model learns around them, and no error says so.

    ## What to do
    Append the group to the list that the optimizer gets.

    ## When it is wrong
    Parameters may be collected only to leave them out; where nothing reads the list, that does the
    same. A list that is counted, printed, returned or handed on is left alone.
    """
    for filled, group in each_place(run, collected_in_vain, lambda found: found[0].node):
        name = min(sorted(group.names), key=len, default="params")
        yield finding(
            f"The parameters collected in `{name}` are never passed to the optimizer",
            (filled, "parameters are collected here, and nothing reads them"),
        )


_setup = template("""
def make_optimizer(model):
    groups = []
    group = {{"params": [], "lr": 1e-5}}
    for name, p in model.named_parameters():
        if "encoder" in name:
            group["params"].append(p)
    groups.append(group)

    group = {{"params": [], "lr": 1e-2}}
    for name, p in model.named_parameters():
        if "head" in name:
            group["params"].append(p)
    {last:}
    return torch.optim.AdamW(groups)
""")
_lists = template("""
class Fitter:
    def __init__(self, net):
        decay, no_decay = [], []
        for name, p in net.named_parameters():
            (decay if p.ndim > 1 else no_decay).append(p)
        self.opt = torch.optim.AdamW({held:})
""")

FIRES = {
    "the second group": _setup("pass"),
    "one of two lists, in a class": _lists('[{"params": decay, "weight_decay": 0.1}]'),
}

SILENT = {
    "near miss: only names are collected": script("""
def make_optimizer(model):
    decay, rest, names = [], [], []
    for name, p in model.named_parameters():
        if p.ndim == 1:
            rest.append(p)
            names.append(name)
        else:
            decay.append(p)
    return torch.optim.AdamW([{"params": decay}, {"params": rest, "weight_decay": 0.0}])
"""),
    "both groups": _setup("groups.append(group)"),
    "near miss: added to the list another way": _setup("groups += [group]"),
    "near miss: two lists": _lists('[{"params": decay}, {"params": no_decay}]'),
    "near miss: given on its own": _setup("return torch.optim.AdamW([*groups, group])"),
}
