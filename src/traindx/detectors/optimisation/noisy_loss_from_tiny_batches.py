from traindx.analysis.curves import curve, noise, slope_z
from traindx.examples import decay, flat, logged
from traindx.model.run import Floats, as_number
from traindx.registry import Findings, Run, Strength, cite, cite_setting, detector, finding

BATCHES = ("batch_size", "train_batch_size", "per_device_train_batch_size", "micro_batch_size")
ACCUMULATION = ("gradient_accumulation_steps", "accumulate_grad_batches", "accumulation_steps")
TINY = 2.0  # examples per step
NOISY = 0.03  # of the level, from point to point
FLAT = 2.0  # Mann-Kendall: no trend either way
MANY_POINTS = 50


@detector(needs=("loss", "config"), suggests=("batch-too-small",))
def check(run: Run) -> Findings:
    """The loss shows no trend within the noise of batches of one or two examples.

    ## What it detects
    A configured batch of one or two examples per step, and a loss without a trend whose noise is
    larger than anything it could have gained.

    ## Why it matters
    Whether the run learns cannot be seen, by you or by the optimizer.

    ## What to do
    Accumulate gradients over 8 to 32 batches, or log an average over a hundred steps.

    ## When it is wrong
    A run that has converged is flat as well. It is a remark and never an alarm.
    """
    loss = run.objective()
    size = run.config.find(*BATCHES)
    if loss is None or size is None or len(loss.finite()) < MANY_POINTS:
        return
    examples = (as_number(size.value) or 0.0) * (run.config.number(*ACCUMULATION) or 1.0)
    finite = loss.finite()
    level = abs(curve(finite.values).end_value)
    shaking = noise(finite.values) / level if level else 0.0
    if not 0 < examples <= TINY or shaking < NOISY or abs(slope_z(finite.values)) > FLAT:
        return
    says = f"{finite.origin.name} fluctuates by {shaking:.0%} and shows no trend"
    yield finding(
        f"A batch size of {examples:.0f} makes the loss too noisy to see whether it falls",
        {"batch-too-small": Strength.MODERATE},
        cite(finite, says, 0, -1, noise=shaking),
        cite_setting(size),
        strength=Strength.WEAK,
        is_symptom=False,
    )


def _run(loss: Floats, size: int, accumulation: int = 1) -> Run:
    config = {"batch_size": size, "gradient_accumulation_steps": accumulation}
    return logged(loss_train=loss, config=config)


FIRES = {"batches of one": _run(flat(100, 2.1, noise=0.08), 1)}

SILENT = {
    "near miss: accumulated": _run(flat(100, 2.1, noise=0.08), 1, 16),
    "noisy and learning": _run(decay(100, noise=0.2), 1),
    "larger batches": _run(flat(100, 2.1, noise=0.08), 32),
}
