from dataclasses import dataclass, fields


@dataclass
class Settings:
    max_length: int = 40
    d_model: int = 64
    n_layers: int = 2
    lr: float = 3e-3
    batch_size: int = 24
    epochs: int = 4


def load(overrides):
    known = {f.name for f in fields(Settings)}
    return Settings(**{k: v for k, v in overrides.items() if k in known})
