from dataclasses import dataclass, field


@dataclass
class TrainingOptions:
    lr: float = 3e-3
    weight_decay: float = 0.01
    label_smoothing: float = 0.05
    word_dropout: float = 0.1
    epochs: int = 4
    batch_size: int = 32


@dataclass
class Options:
    dim: int = 32
    max_len: int = 8
    training: TrainingOptions = field(default_factory=TrainingOptions)
