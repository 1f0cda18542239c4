import numpy as np

from traindx.examples import decay, logged
from traindx.model.findings import cite_setting
from traindx.model.run import as_number
from traindx.registry import Findings, Run, detector, finding, suggested

NAMES = ("epochs", "num_epochs", "n_epochs", "max_epochs", "num_train_epochs", "max_steps")
CAUSES = suggested(moderate="config-not-applied", weak="insufficient-training")


@detector(needs=("config",), suggests=tuple(CAUSES))
def check(run: Run) -> Findings:
    """The settings ask for no epochs, and nothing was trained.

    ## What it detects
    A number of epochs or steps that is zero, in a run that logs an evaluation and no training loss.

    ## Why it matters
    What was evaluated is the model as it was made.

    ## What to do
    Look at where the number comes from: a default of zero, or an override that did not arrive.

    ## When it is wrong
    A run that only evaluates asks for no epochs on purpose.
    """
    setting = run.config.find(*NAMES)
    if setting is None or as_number(setting.value) != 0.0 or not run.series:
        return
    loss = run.main_loss()
    if loss is not None and len(loss) > 1:
        return
    yield finding("No epoch was trained", CAUSES, cite_setting(setting))


FIRES = {"evaluated at once": logged(loss_val=[np.inf], config={"train.epochs": 0})}

SILENT = {
    "trains": logged(loss_train=decay(20), config={"train.epochs": 20}),
    "near miss: trains all the same": logged(loss_train=decay(20), config={"train.epochs": 0}),
}
