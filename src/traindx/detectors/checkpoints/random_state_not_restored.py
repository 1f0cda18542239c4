from traindx.analysis.program.training.claims import each_place, finding
from traindx.analysis.program.training.random_states import lost_random_states
from traindx.examples import template
from traindx.registry import Findings, Run, detector


@detector(needs=("source",), suggests=("incomplete-checkpoint",))
def check(run: Run) -> Findings:
    """A checkpoint holds random states, and not that of a generator which training draws from.

    ## What it detects
    A program that saves the state of torch's, NumPy's or Python's generator, so that a resumed run
    goes on as if it had never stopped, while training draws from another: a `torch.Generator` or
    `np.random.default_rng` of its own, or a global one that was forgotten. Or it never sets a
    saved state again, or seeds the generator after it was set.

    ## Why it matters
    After a restart noise, masks and orders begin anew: the run repeats what it has seen, and two
    runs that should be equal are not.

    ## What to do
    Save `generator.get_state()` (`rng.bit_generator.state` of NumPy) beside the others and set it
    when the run goes on; seed before the state is set, not after.

    ## When it is wrong
    Programs that save no random state make no such claim and are left alone. So is a generator that
    is seeded in every epoch, is saved as a whole, or is handed to something out of sight.
    """
    for found in each_place(run, lost_random_states, lambda found: found.event.node):
        yield finding(
            f"Random states are saved, and {found.source} does not go on where it was",
            (found.event, found.why),
            (found.save.deed, "the checkpoint holds other random states"),
            at=found.save.deed,
        )
        return


_PROGRAM = """
import numpy as np
noise = torch.Generator().manual_seed(0)
model = torch.nn.Linear(8, 2)
optimizer = torch.optim.Adam(model.parameters())
saved = torch.load("last.pt")
model.load_state_dict(saved["model"])
optimizer.load_state_dict(saved["optimizer"])
{restore:torch.set_rng_state(saved["rng"])}
for step in range(saved["step"], 1000):
    x, y = next(batches)
    x = x + {drawn:torch.randn(8, generator=noise)}
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
torch.save({{"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step{more}}},
           "last.pt")
"""
_program = template(_PROGRAM, more=', "rng": torch.get_rng_state()')

FIRES = {
    "a generator of its own": _program(),
    "a global generator that was forgotten": _program(drawn="np.random.randn(8)"),
    "saved, and never set": _program(drawn="torch.randn(8)", restore="pass"),
    "seeded after the state is set": _program(
        drawn="torch.randn(8)", restore='torch.set_rng_state(saved["rng"]); torch.manual_seed(0)'
    ),
}

SILENT = {
    "near miss: its state is saved too": _program(
        restore='torch.set_rng_state(saved["rng"]); noise.set_state(saved["noise"])',
        more=', "rng": torch.get_rng_state(), "noise": noise.get_state()',
    ),
    "near miss: drawn from what is saved": _program(drawn="torch.randn(8)"),
    "near miss: seeded by the step": _program(
        drawn="torch.randn(8, generator=noise.manual_seed(step))"
    ),
    "near miss: seeded before the state is set": _program(
        drawn="torch.randn(8)", restore='torch.manual_seed(0); torch.set_rng_state(saved["rng"])'
    ),
    "no claim to be the same run": _program(restore="pass", more=""),
}
