from dataclasses import dataclass, field
from typing import List


@dataclass
class ExperimentConfig:
    n_rows: int = 3000
    n_features: int = 12
    hidden: int = 64
    batch_size: int = 128
    epochs: int = 12
    lr: float = 3e-3
    seed: int = 7
    tasks: List[str] = field(default_factory=lambda: ["price", "rent", "sold_fast"])
