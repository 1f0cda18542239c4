"""A log copied while the run goes on: harmless warnings, and the last line ends in the middle."""

from pathlib import Path

import torch
from training import CharacterModel, Clock, seed, text, windows

WARNINGS = """\
/opt/conda/lib/python3.11/site-packages/torch/utils/data/dataloader.py:627: UserWarning: This \
DataLoader will create 8 worker processes in total. Our suggested max number of worker in current \
system is 4, which is smaller than what this DataLoader is going to create.
  warnings.warn(
Token indices sequence length is longer than the specified maximum sequence length for this model \
(1071 > 1024). Running this sequence through the model will result in indexing errors
"""


def make(folder: Path) -> None:
    seed(30)
    train, val, letters = text()
    model, clock = CharacterModel(letters), Clock(0.9)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    written = WARNINGS
    for step in range(1, 701):
        loss = model(windows(train, 16))
        optimizer.zero_grad()
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        clock.tick()
        stamp = clock.stamp("%Y-%m-%d %H:%M:%S")
        if step % 5 == 0:
            written += (
                f"{stamp} | INFO | train | update {step} | loss {loss:.3f} "
                f"| ppl {loss.exp():.2f} | wps 21044.7 | gnorm {norm:.3f} "
                f"| clip {100 * (norm > 1):.1f} | lr 0.002\n"
            )
        if step % 100 == 0:
            with torch.no_grad():
                held_out = model(windows(val, 64))
            written += f"{stamp} | INFO | valid | update {step} | loss {held_out:.3f}\n"
    (folder / "fairseq.log").write_text(written[:-100])
