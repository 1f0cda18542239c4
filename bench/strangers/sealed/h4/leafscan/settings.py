from dataclasses import dataclass


@dataclass
class Settings:
    effective_batch: int = 32
    accumulate: int = 16
    epochs: int = 5
    lr: float = 2e-3
    leaves: int = 512
    size: int = 12
    species: int = 4
    seed: int = 17

    @property
    def loader_batch(self) -> int:
        return self.effective_batch // self.accumulate
