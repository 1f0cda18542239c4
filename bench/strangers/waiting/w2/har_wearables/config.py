from dataclasses import dataclass, field
from typing import List


@dataclass
class ModelConfig:
    n_channels: int = 6
    window: int = 64
    hidden: List[int] = field(default_factory=lambda: [128, 64])
    n_classes: int = 5
    activation: str = "elu"
    output_activation: str = "softmax"
    dropout: float = 0.1


@dataclass
class TrainConfig:
    epochs: int = 12
    batch_size: int = 64
    lr: float = 1e-3
    weight_decay: float = 1e-4
    seed: int = 7
    device: str = "cpu"
