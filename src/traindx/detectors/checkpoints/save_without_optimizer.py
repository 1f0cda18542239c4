from traindx.analysis.program.training.checkpoints import states_taken
from traindx.analysis.program.training.claims import finding, program_of
from traindx.analysis.program.training.kinds import Kind
from traindx.analysis.program.training.restoration import bare_weights
from traindx.examples import script, template
from traindx.registry import Findings, Run, Strength, detector


@detector(needs=("source",), suggests=("incomplete-checkpoint",))
def check(run: Run) -> Findings:
    """A training script that resumes from a checkpoint saves nothing but the model's weights.

    ## What it detects
    A program that loads weights into the model that it then trains, from an epoch that is not
    always the first, and in which everything that is saved is the state of a model alone.

    ## Why it matters
    A resumed run starts with an empty optimizer, a fresh schedule and epoch 0: the loss jumps, and
    the learning rate warms up again.

    ## What to do
    Save a dictionary: model, optimizer, scheduler, scaler, epoch, random states.

    ## When it is wrong
    Optimizer state may be saved elsewhere, or not matter with plain SGD; hence only a remark. Where
    it goes to a file of its own, or a framework saves it, nothing is said.
    """
    program = program_of(run)
    if states_taken(program) & {Kind.OPTIMIZER, Kind.UNKNOWN}:
        return
    save = next((s for story in program.stories if (s := bare_weights(story)) is not None), None)
    if save is not None:
        yield finding(
            "The script resumes, and its checkpoints hold the weights only",
            (save.deed, "only the weights are saved"),
            strength=Strength.MODERATE,
            hint=Strength.MODERATE,
            is_symptom=False,
        )


_program = template("""
if args.resume:
    model.load_state_dict(torch.load("last.pt"))
for epoch in range(start_epoch, 10):
    for x, y in loader:
        optimizer.zero_grad()
        criterion(model(x), y).backward()
        optimizer.step()
    torch.save({saved}, "last.pt")
""")

_class = template("""
class Trainer:
    def __init__(self, net, first_epoch):
        self.net, self.first = net, first_epoch
        self.opt = torch.optim.Adam(net.parameters())

    def load(self, path):
        self.net.load_state_dict(torch.load(path))

    def save(self, path):
        torch.save({saved:self.net.state_dict()}, path)

    def fit(self, loader, path):
        self.load(path)
        for epoch in range(self.first, 10):
            for x, y in loader:
                self.opt.zero_grad()
                torch.nn.functional.mse_loss(self.net(x), y).backward()
                self.opt.step()
            self.save(path)

Trainer(torch.nn.Linear(4, 1), args.first).fit(loader, "last.pt")
""")

FIRES = {
    "weights only": _program("model.state_dict()"),
    "by the methods of a trainer": _class(),
}

SILENT = {
    "all of it": _program('{"model": model.state_dict(), "optimizer": optimizer.state_dict()}'),
    "near miss: the optimizer goes to its own file": _program(
        'model.state_dict(), "last.pt")\n    torch.save(opt.state_dict()'
    ),
    "near miss: a framework saves all of it": _program(
        'model.state_dict(), "last.pt")\n    accelerator.save_state("all"'
    ),
    "near miss: something that may hold all of it": _program("agent.state_dict()"),
    "near miss: nothing resumes": script(
        "import torch\nfor x, y in loader:\n    loss = criterion(model(x), y)\n"
        "    loss.backward()\n    optimizer.step()\n"
        "torch.save(model.state_dict(), 'final.pt')\n"
    ),
}
