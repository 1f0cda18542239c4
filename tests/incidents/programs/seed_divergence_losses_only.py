"""The specification's first example when only the losses are left. A synthetic curve."""

from pathlib import Path

from seed_divergence_epoch_7 import write_losses


def make(folder: Path) -> None:
    write_losses(folder / "losses.csv")
