import re
from dataclasses import replace

from traindx.analysis.checkpoints import vocabulary_tables
from traindx.analysis.metrics.text_samples import repeated_cycle
from traindx.examples import Architecture, Tensor, TextSample, make_run
from traindx.registry import Evidence, Findings, Run, Strength, detector, finding

SHARE = 0.75  # the case that this grew from had 0.79; sound small models reach 0.6
LARGE_BODY = 30e6  # parameters beside the tables; with as many, a large vocabulary is a choice
_ATTENTION = re.compile(r"attn|attention|q_proj|qkv|in_proj_weight|c_attn", re.I)
_COLLAPSE = re.compile(
    r"repeat|repetit|same (?:token|word|output|answer)|colon|gibberish|collaps|degenerate"
    r"|only (?:output|generat|predict)",
    re.IGNORECASE,
)


@detector(needs=("architecture",), suggests=("embedding-dominated-model",))
def check(run: Run) -> Findings:
    """Embeddings hold most of a transformer's parameters.

    ## What it detects
    Tables of a vocabulary, an untied output matrix included, with three quarters or more of the
    parameters of a transformer whose other layers are small.

    ## Why it matters
    The layers that should model structure have no capacity. The loss falls while frequencies are
    learnt, then stops, and the output collapses to frequent tokens.

    ## What to do
    Tie the output to the table, cut the vocabulary, or move parameters into depth.

    ## When it is wrong
    Small distilled models and multilingual ones have such shares by design; without the matching
    symptom this is only a remark. Tables of users and items are left alone.
    """
    architecture = run.architecture
    if architecture is None or not any(_ATTENTION.search(t.name) for t in architecture.tensors):
        return
    counted = [t for t in architecture.tensors if not t.statistics.get("alias")]
    total = sum(t.size for t in counted)
    tables = vocabulary_tables(counted)
    held = sum(t.size for t in tables)
    if not tables or held < SHARE * total or total - held > LARGE_BODY:
        return
    share = held / total
    symptom = next((s for s in run.symptoms if _COLLAPSE.search(s)), None) or repeated_cycle(run)
    strength = Strength.STRONG if symptom else Strength.MODERATE
    says = f"{held:,} of {total:,} parameters are in {', '.join(t.name for t in tables[:3])}"
    where = Evidence(says, architecture.artifact, tables[0].name, values={"share": share})
    yield finding(
        f"Embeddings hold {100 * share:.0f} % of the parameters of a small transformer",
        {"embedding-dominated-model": strength},
        where,
        strength=strength,
        is_symptom=symptom is not None,
    )


def _example(
    vocabulary: int, width: int, layers: int, *more: Tensor, symptoms: tuple[str, ...] = ()
) -> Run:
    blocks = (Tensor(f"h.{i}.attn.qkv.weight", (12 * width, width)) for i in range(layers))
    table = Tensor("wte.weight", (vocabulary, width))
    saved = Architecture((table, *blocks, *more), "model.pt")
    return replace(make_run(architecture=saved), symptoms=symptoms)


_HEAD = Tensor("lm_head.weight", (50257, 384))

FIRES = {
    "79 % embeddings": _example(50257, 384, 3),
    "and the output repeats": _example(50257, 384, 3, symptoms=("it only outputs colons",)),
    "an untied head": _example(50257, 384, 5, _HEAD),
    "and its samples repeat": replace(
        _example(50257, 384, 3), samples=tuple(TextSample("::::", "a.log") for _ in range(3))
    ),
}

SILENT = {
    "near miss: the head is tied": _example(
        50257, 384, 5, replace(_HEAD, statistics={"alias": 1.0})
    ),
    "near miss: a multilingual model with a large body": _example(250_000, 1024, 3),
    "near miss: a table of items without attention": make_run(
        architecture=Architecture(
            (Tensor("item_embedding.weight", (10**6, 64)), Tensor("mlp.weight", (64, 64))), "a.pt"
        )
    ),
    "a distilled model of six layers": _example(30522, 768, 6),
}
