import numpy as np

from traindx.analysis.metrics.learning_rates import unapplied_rate
from traindx.examples import logged
from traindx.model.run import as_number
from traindx.registry import Findings, Run, Strength, cite, cite_setting, detector, finding


@detector(needs=("lr", "config"), suggests=("config-not-applied",))
def check(run: Run) -> Findings:
    """The learning rate never reaches, or exceeds, the one value that was configured.

    ## What it detects
    One configured learning rate, and a logged one whose highest value is another: an override that
    did not take effect, a default that won, a checkpoint that brought its own.

    ## Why it matters
    Conclusions are drawn about a value that was never used.

    ## What to do
    Print the optimizer's own groups after it is built, and follow the value from the command line.

    ## When it is wrong
    Rates that are scaled by batch size or by layer differ by design; where the config speaks of
    such scaling, of several rates, or where warm-up has not ended, nothing is said.
    """
    found = unapplied_rate(run)
    if found is None:
        return
    finite, top, setting = found
    used, wanted = float(finite.values[top]), as_number(setting.value) or 0.0
    says = f"{finite.origin.name} is at most {used:.4g}, at {finite.when(top)}"
    yield finding(
        f"The learning rate is at most {used:.4g}, but {wanted:.4g} is configured",
        {"config-not-applied": Strength.STRONG},
        cite(finite, says, top, used=used, wanted=wanted),
        cite_setting(setting),
        strength=Strength.MODERATE,
        is_symptom=False,
    )


FIRES = {"the default won": logged(lr=np.full(50, 1e-3), config={"optimizer.lr": 0.1})}

SILENT = {
    "as configured": logged(lr=np.linspace(0.1, 0.0, 50), config={"lr": 0.1}),
    "near miss: warm-up has not ended": logged(lr=np.linspace(0.0, 0.02, 50), config={"lr": 0.1}),
    "near miss: scaled by the batch size": logged(
        lr=np.full(50, 0.4), config={"lr": 0.1, "scale_lr": True}
    ),
}
