from traindx.analysis.program.execution.values import Result, Value
from traindx.analysis.program.training.adversarial_turns import lost_turns
from traindx.analysis.program.training.claims import finding, program_of, replace, source_text
from traindx.examples import template
from traindx.registry import Findings, Run, detector


@detector(needs=("source",), suggests=("detached-loss",))
def check(run: Run) -> Findings:
    """The discriminator judges a detached sample for the loss of the generator.

    ## What it detects
    A program with two optimizers, one of which only ever steps after losses that reach nothing but
    the network that the other optimizer trains, since the output of its own network is detached.

    ## Why it matters
    `detach` belongs into the discriminator's turn. In the generator's it cuts the only path by
    which the verdict could teach it: the adversarial term has no gradient, the generator follows
    its other terms or nothing, and the discriminator wins.

    ## What to do
    Give the discriminator the sample itself when the generator is trained.

    ## When it is wrong
    A loss with another term that reaches the generator is left alone, and so are programs in which
    it cannot be seen which optimizer steps after which loss.
    """
    for turn in (t for story in program_of(run).stories for t in lost_turns(story)):
        cut, backward = turn.cuts[0], turn.backward[0]
        place = cut if cut.site is not None else backward
        yield finding(
            f"`{backward.text or 'the loss'}` does not reach the generator: its sample is detached",
            (place, "this value has no history"),
            (backward, "this loss should train the network behind it"),
            patch=_patch(cut),
        )
        return


def _patch(cut: Value) -> str | None:
    """Take the detach away where its operand is written in it."""
    operand = cut.receiver if isinstance(cut, Result) else None
    if operand is None or operand.site is None:
        return None
    name = next((n for n in sorted(operand.names) if source_text(cut).startswith(f"{n}.")), "")
    return replace(cut, name) if name else None


_turns = template("""
def train_step(G, D, real, noise, opt_g, opt_d):
    fake = G(noise)
    d_loss = F.mse_loss(D(real), torch.ones(8, 1)) + F.mse_loss(D(fake.detach()), torch.zeros(8, 1))
    opt_d.zero_grad()
    d_loss.backward()
    opt_d.step()
    verdict = D({sample:})
    {loss:g_loss = F.mse_loss(verdict, torch.ones(8, 1))}
    opt_g.zero_grad()
    g_loss.backward()
    opt_g.step()
""")

FIRES = {
    "against the label of real data": _turns("fake.detach()"),
    "negated": _turns("fake.detach()", "g_loss = -verdict.mean()"),
}

SILENT = {
    "the sample itself": _turns("fake"),
    "near miss: detached in the discriminator's turn": _turns("fake", "g_loss = -verdict.mean()"),
    "near miss: detached and only shown": _turns(
        "fake.detach()", "g_loss = -D(fake).mean(); print(verdict)"
    ),
}
