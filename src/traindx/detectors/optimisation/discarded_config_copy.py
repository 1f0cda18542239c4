from traindx.analysis.program.training.claims import each_place, finding
from traindx.analysis.program.training.configuration import discarded_copies
from traindx.examples import script, template
from traindx.registry import Findings, Run, detector


@detector(needs=("source",), suggests=("config-not-applied",))
def check(run: Run) -> Findings:
    """Settings are put into a copy of the configuration that nothing takes.

    ## What it detects
    `dataclasses.replace`, `_replace`, `OmegaConf.merge` or `model_copy`, which return a changed
    copy, as a statement of their own: the result is dropped.

    ## Why it matters
    The run goes on with the defaults. Whoever changes the file or the option changes nothing, and
    judges the run by settings that were not used.

    ## What to do
    Bind the result: `config = dataclasses.replace(config, lr=1e-3)`.

    ## When it is wrong
    A call that is made only to check that the settings are valid looks the same.
    """
    for call in each_place(run, discarded_copies, lambda found: found.node):
        name = call.name.rsplit(".", 1)[-1]
        yield finding(
            f"The result of {name} is thrown away: the configuration stays as it was",
            (call, f"{name} returns a changed copy, which nothing takes"),
        )


_load = template("""
import dataclasses
from dataclasses import dataclass


@dataclass(frozen=True)
class Config:
    lr: float = 1e-4

def load(values):
    config = Config()
    {apply:}
    return config

config = load({{"lr": 0.1}})
net = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=config.lr)
""")

FIRES = {
    "a data class": _load("dataclasses.replace(config, **values)"),
    "OmegaConf": script(
        "import torch\nfrom omegaconf import OmegaConf\n"
        "def load(base, path):\n    OmegaConf.merge(base, OmegaConf.load(path))\n"
        "    return base\n"
        "optimizer = torch.optim.SGD(net.parameters(), lr=load(base, 'a.yaml').lr)\n"
    ),
}

SILENT = {
    "bound": _load("config = dataclasses.replace(config, **values)"),
    "near miss: returned at once": _load("return dataclasses.replace(config, **values)"),
    "near miss: a replace of text": _load('"a-b".replace("-", "_")'),
}
