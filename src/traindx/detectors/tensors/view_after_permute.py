from traindx.analysis.program.execution.events import ProgramEvent
from traindx.analysis.program.execution.values import Value
from traindx.analysis.program.training.claims import cite, finding, program_of, replace, source_text
from traindx.analysis.program.training.facts.memory_layouts import joins_apart
from traindx.examples import script
from traindx.registry import Finding, Findings, Run, detector


@detector(needs=("source",), suggests=("non-contiguous-view",))
def check(run: Run) -> Findings:
    """`view` joins what a permutation or a slice has parted.

    ## What it detects
    A tensor whose dimensions were permuted or transposed, cut into windows (`unfold`) or pieces
    (`chunk`), expanded, or from which a slice has left something out (`labels[:, 1:]`), and a
    `view` of it that makes one of two dimensions that are not next to each other in memory.

    ## Why it matters
    A view may not copy. The first batch fails with "view size is not compatible with input tensor's
    size and stride".

    ## What to do
    Use `reshape`, which copies where it must, or `.contiguous().view(…)`.

    ## When it is wrong
    A dimension of size one can be joined with any other.
    """
    seen: set[object] = set()
    for story in program_of(run).stories:
        for event in story.events:
            permuted, made = event.receiver, event.result
            if event.name != ".view" or permuted is None or made is None or event.node in seen:
                continue
            if joins_apart(story, permuted, made):
                seen.add(event.node)
                yield _finding(event, permuted)


def _finding(event: ProgramEvent, permuted: Value) -> Finding:
    text = source_text(event)
    before, _, sizes = text.rpartition(".view(")
    made = (
        ()
        if permuted.site is None
        else (cite(permuted, "this changes what is seen, and the memory stays as it is"),)
    )
    return finding(
        "`view` joins dimensions of a rearranged tensor that are apart in memory",
        (event, "a view cannot copy; reshape can"),
        *made,
        patch=replace(event, f"{before}.reshape({sizes}") if before else None,
    )


_NET = """
class Net(nn.Module):
    def forward(self, x):
        b, c, f, t = x.shape
        {body}
"""


def _net(*body: str) -> Run:
    return script(_NET, body="\n        ".join(body))


FIRES = {
    "permuted, then joined": _net("return x.permute(0, 3, 2, 1).view(b, t, f * c)"),
    "heads joined after a transpose": _net(
        "y = x.view(b, c, f, t).transpose(1, 2)", "return y.view(b, f, c * t)"
    ),
    "channels are shuffled": _net(
        "y = x.view(b, 4, c // 4, f, t).transpose(1, 2)", "return y.view(b, c, f, t)"
    ),
    "targets that are shifted": _net("y = torch.zeros(b, t)", "return y[:, 1:].view(-1)"),
    "a comparison of what is transposed": _net(
        "y = torch.zeros(b, 5).t()", "return y.eq(torch.ones(5, b))[:3].view(-1)"
    ),
    "the last dimension is split": _net(
        "y = torch.zeros(b, 30, f, t).permute(0, 2, 3, 1)", "return y.view(b, -1, 10)"
    ),
    "patches by unfold": _net(
        "y = torch.zeros(b, 1, 16, 16).unfold(2, 4, 4).unfold(3, 4, 4)", "return y.view(b, 16, 16)"
    ),
    "an expanded dimension": _net("return x.unsqueeze(1).expand(b, 5, c, f, t).view(-1, c, f, t)"),
    "one piece of several": _net(
        "q, k = torch.zeros(b, t, 64).chunk(2, dim=-1)", "return q.view(b, t * 32)"
    ),
    "heads joined behind a ReLU": _net(
        "y = x.permute(0, 2, 1, 3)", "y = torch.relu(y) * 0.5", "return y.view(b, f, -1)"
    ),
}

SILENT = {
    "reshaped": _net("return x.permute(0, 3, 2, 1).reshape(b, t, f * c)"),
    "near miss: made contiguous": _net("return x.permute(0, 3, 2, 1).contiguous().view(b, -1)"),
    "near miss: joins what lies together": _net("return x.permute(0, 3, 1, 2).view(b, t, c * f)"),
    "near miss: as many dimensions": _net("return x.permute(0, 3, 2, 1).view(b, t, f, c)"),
    "near miss: splits what was moved": _net("return x.transpose(1, 2).view(b, f, c, t, 1)"),
    "near miss: turned back": _net("return x.transpose(1, 2).transpose(1, 2).view(b, c, -1)"),
    "near miss: joins what lies together behind": _net(
        "return x.transpose(0, 1).view(c, b, f * t)"
    ),
    "near miss: windows in their order": _net(
        "return torch.zeros(b, 16, 3).unfold(1, 4, 4).transpose(2, 3).view(b, 16, 3)"
    ),
    "near miss: heads of a piece": _net(
        "q, k = torch.zeros(b, t, 64).chunk(2, dim=-1)", "return q.view(b, t, 4, 8)"
    ),
    "near miss: a dimension of one is moved": _net(
        "return torch.zeros(b, 7, 1, 9).transpose(1, 2).view(b, 63)"
    ),
    "near miss: the first rows": _net("y = torch.zeros(b, t)", "return y[1:].view(-1)"),
    "near miss: one column": _net("y = torch.zeros(b, t)", "return y[:, 1:2].view(-1)"),
    "near miss: perhaps all columns": _net("y = torch.zeros(b, t)", "return y[:, :f].view(-1)"),
    "near miss: a copy of a slice": _net("y = torch.zeros(b, t)", "return (y[:, 1:] * 2).view(-1)"),
    "near miss: how many is not known": _net("return encode(x).transpose(1, 2).view(b, -1)"),
}
