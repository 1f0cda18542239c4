from torch import nn

ACTIVATIONS = {
    "regression": nn.Identity,
    "multilabel": nn.Identity,
    "multiclass": lambda: nn.Softmax(dim=-1),
}


def build_head(dim: int, n_out: int, task: str, dropout: float = 0.1) -> nn.Sequential:
    return nn.Sequential(
        nn.LayerNorm(dim),
        nn.Dropout(dropout),
        nn.Linear(dim, n_out),
        ACTIVATIONS[task](),
    )
