from traindx.analysis.program.training.claims import finding, program_of
from traindx.analysis.program.training.hash_order import hash_ordered, hashed_texts
from traindx.analysis.program.training.seeds import seeded, trains
from traindx.examples import template
from traindx.registry import Findings, Run, detector


@detector(needs=("source",), suggests=("unseeded-randomness",))
def check(run: Run) -> Findings:
    """A seeded program numbers words by a set, whose order differs from process to process.

    ## What it detects
    `{w: i for i, w in enumerate(set(words))}`, `list(set(words)).index(w)` or `hash(word) % n`, of
    texts, in a program that trains and seeds torch.

    ## Why it matters
    Python hashes texts with another key in every process. Ids, and with them weights and results,
    differ in spite of all seeds, and a saved vocabulary does not fit the next run.

    ## What to do
    `sorted(set(words))`, or a digest of `hashlib` for `hash`.

    ## When it is wrong
    With PYTHONHASHSEED set from outside, the order is the same in every run.
    """
    for story in program_of(run).stories:
        if not trains(story) or not any(seeded(e) in ("torch", "all") for e in story.events):
            continue
        found = [(at.site, "the order of a set") for at, _ in hash_ordered(story)]
        found += [(e.site, "the hash of a text") for e in hashed_texts(story)]
        for site, what in found[:1]:
            yield finding(
                f"Numbers come from {what}: they differ from run to run in spite of the seeds",
                (site, f"{what} is another one in every process"),
                is_symptom=False,
            )
            return


_program = template("""
torch.manual_seed(0)
text = open("corpus.txt").read()
words = text.split()
{ids}
model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
""")

FIRES = {
    "a set is counted": _program("ids = {w: i for i, w in enumerate(set(words))}"),
    "a list of a set": _program(
        "names = list(set(w.lower() for w in words))\nids = [names.index(w) for w in words]"
    ),
    "a set that is filled": _program(
        "seen = set()\nfor w in words:\n    seen.add(w.strip())\n"
        "ids = {}\nfor w in seen:\n    ids[w] = len(ids)"
    ),
    "a hash": _program("ids = [hash(w.lower()) % 1000 for w in words]"),
}

SILENT = {
    "near miss: sorted": _program("ids = {w: i for i, w in enumerate(sorted(set(words)))}"),
    "near miss: in the order of the text": _program(
        "ids = {w: i for i, w in enumerate(dict.fromkeys(words))}"
    ),
    "near miss: a set that is only asked": _program(
        "rare = set(words)\nids = [i for i, w in enumerate(words) if w in rare]"
    ),
    "near miss: numbers, which hash to themselves": _program(
        "ids = {n: i for i, n in enumerate(set([3, 1, 2]))}"
    ),
}
