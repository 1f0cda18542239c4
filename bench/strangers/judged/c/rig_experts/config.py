from dataclasses import dataclass, field
from typing import Dict


@dataclass
class RigConfig:
    # channel widths as they are named in the plant's historian export
    sensors: Dict[str, int] = field(default_factory=lambda: {
        "imu.acc": 6,
        "imu.gyro": 6,
        "motor.current": 4,
        "bearing.temp": 2,
    })
    d_model: int = 24
    n_states: int = 3
    n_train: int = 900
    n_test: int = 300
    batch_size: int = 64
    epochs: int = 6
    lr: float = 2e-3
    seed: int = 11
