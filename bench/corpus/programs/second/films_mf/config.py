import os
from dataclasses import dataclass, field


@dataclass
class DataConfig:
    n_users: int = 300
    n_films: int = 200
    n_ratings: int = 14000
    rank: int = 4
    noise: float = 0.35
    val_share: float = 0.1
    test_share: float = 0.1


@dataclass
class TrainConfig:
    dim: int = 8
    epochs: int = 12
    batch_size: int = 256
    lr: float = 0.02
    l2: float = 0.02          # on the looked-up factors only, not the biases
    patience: int = 4
    lr_decay: float = 0.85
    checkpoint: str = "best_mf.pt"
    log_file: str = "log.jsonl"


@dataclass
class Config:
    seed: int = field(default_factory=lambda: int(os.environ.get("SEED", "0")))
    data: DataConfig = field(default_factory=DataConfig)
    train: TrainConfig = field(default_factory=TrainConfig)
