from traindx.analysis.program import project_of
from traindx.analysis.program.deprecations import Rename, renamed, uses
from traindx.examples import script, template
from traindx.registry import Finding, Findings, Run, Strength, detector

OLD = {
    f"torch.{device}.amp.{place}{name}": (device, name)
    for device in ("cuda", "cpu")
    for name, place in (
        ("autocast", ""),
        ("autocast", "autocast_mode."),
        ("GradScaler", ""),
        ("GradScaler", "grad_scaler."),
    )
}
KEYWORDS = {"autocast": "enabled"}  # the first argument of before, which has to be named now


@detector(needs=("source",), suggests=("deprecated-amp-api",))
def check(run: Run) -> Findings:
    """Mixed precision is used through `torch.cuda.amp`, which is deprecated.

    ## What it detects
    Calls of `torch.cuda.amp.autocast`, `torch.cuda.amp.GradScaler` and their CPU kin.

    ## Why it matters
    They warn on every use and will be removed; the current names take the device as an argument.

    ## What to do
    Use `torch.amp.autocast("cuda", …)` and `torch.amp.GradScaler("cuda", …)`.

    ## When it is wrong
    Code that has to run on torch before 2.4 still needs the old names; a choice between the two by
    version or by `try` is left alone.
    """
    for module in project_of(run).training_modules:
        found = uses(module, OLD)
        if not found:
            continue
        device, name = OLD[found[0].name]
        count = f" ({len(found)} uses)" if len(found) > 1 else ""
        yield Finding(
            claim=f"`torch.{device}.amp.{name}` is deprecated in favour of "
            f'`torch.amp.{name}("{device}")`{count}',
            strength=Strength.STRONG,
            evidence=tuple(u.cite(f"old name of {OLD[u.name][1]}") for u in found[:5]),
            shows="deprecated-amp-api",
            location=found[0].location,
            patch=renamed(module, [(u, _rename(*OLD[u.name])) for u in found]),
        )


def _rename(device: str, name: str) -> Rename:
    return Rename(f"torch.amp.{name}", f'"{device}"', KEYWORDS.get(name, ""))


_LOOP = """
{imports}

scaler = {scaler}
for data, target in loader:
    with {context}:
        loss = criterion(model(data), target)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
"""
_loop = template(_LOOP, scaler="", context="", imports="")

FIRES = {
    "old names": _loop("torch.cuda.amp.GradScaler()", "torch.cuda.amp.autocast(enabled=True)"),
    "imported names": _loop(
        "GradScaler()", "autocast()", "from torch.cuda.amp import GradScaler, autocast"
    ),
}

SILENT = {
    "current names": _loop('torch.amp.GradScaler("cuda")', 'torch.autocast("cuda")'),
    "near miss: chosen by version": script("""
if torch.__version__ < "2.4":
    scaler = torch.cuda.amp.GradScaler()
else:
    scaler = torch.amp.GradScaler("cuda")
"""),
}
