from dataclasses import dataclass, field


@dataclass
class Spectrum:
    frame: int = 64
    floor_db: float = -20.0
    keep_low: int = 24


@dataclass
class Settings:
    n_clips: int = 400
    seed: int = 0
    epochs: int = 15
    lr: float = 5e-3
    spectrum: Spectrum = field(default_factory=Spectrum)
