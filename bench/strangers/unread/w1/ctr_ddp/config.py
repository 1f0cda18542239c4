from dataclasses import dataclass, fields
import argparse


@dataclass
class TrainConfig:
    rows: int = 8000
    n_fields: int = 6
    cardinality: int = 50
    dim: int = 8
    batch_size: int = 128
    epochs: int = 2
    lr: float = 0.01
    seed: int = 123
    world_size: int = 1
    backend: str = "gloo"

    @classmethod
    def from_cli(cls, argv=None):
        p = argparse.ArgumentParser()
        for f in fields(cls):
            p.add_argument("--" + f.name.replace("_", "-"), type=f.type, default=f.default)
        return cls(**vars(p.parse_args(argv)))
