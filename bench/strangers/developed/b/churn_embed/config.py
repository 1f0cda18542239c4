from dataclasses import dataclass, field


@dataclass
class DataConfig:
    n_rows: int = 3000
    n_regions: int = 400
    n_plans: int = 6
    val_fraction: float = 0.2
    smoothing: float = 2.0


@dataclass
class TrainConfig:
    lr: float = 2e-3
    weight_decay: float = 1e-4
    batch_size: int = 128
    epochs: int = 6
    hidden: int = 48
    seed: int = 17
    data: DataConfig = field(default_factory=DataConfig)
