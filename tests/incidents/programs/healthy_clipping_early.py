"""Raw gradient norms of forty at first, clipped to 3, in the format of Megatron-LM."""

from pathlib import Path

import torch
from training import CharacterModel, Clock, seed, text, windows

STEPS, WARMUP, PEAK = 900, 60, 3e-3


def make(folder: Path) -> None:
    seed(11)
    train, _, letters = text()
    model, clock = CharacterModel(letters), Clock(0.042)
    with torch.no_grad():
        model.letters.weight.mul_(
            0.001
        )  # the first layer norm magnifies the gradient of a small input
        model.places.mul_(0.001)
    optimizer = torch.optim.AdamW(model.parameters(), lr=PEAK)
    arguments = {
        "adam_beta2": 0.999, "clip_grad": 3.0, "global_batch_size": 16, "hidden_size": 48,
        "lr": PEAK, "lr_decay_style": "linear", "lr_warmup_iters": WARMUP, "num_layers": 1,
        "seq_length": 24, "train_iters": STEPS, "weight_decay": 0.01,
    }  # fmt: skip
    lines = ["------------------------ arguments ------------------------"]
    lines += [f"  {key} {'.' * (48 - len(key))} {value}" for key, value in arguments.items()]
    lines += ["-------------------- end of arguments ---------------------", "training ..."]
    for step in range(1, STEPS + 1):
        rate = PEAK * min(step / WARMUP, 1 - 0.9 * (step - WARMUP) / (STEPS - WARMUP))
        optimizer.param_groups[0]["lr"] = rate
        loss = model(windows(train, 16))
        optimizer.zero_grad()
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 3.0)
        optimizer.step()
        took_ms = 1000 * clock.tick()
        if step % 5 == 0:
            lines.append(
                f" [{clock.stamp()}] iteration {step:8d}/{STEPS:8d}"
                f" | consumed samples: {step * 16:12d}"
                f" | elapsed time per iteration (ms): {took_ms:.1f} | learning rate: {rate:.6E}"
                f" | global batch size:    16 | lm loss: {loss:.6E} | loss scale: 1.0"
                f" | grad norm: {norm:.3f} | number of skipped iterations:   0"
                " | number of nan iterations:   0 |"
            )
    (folder / "megatron.log").write_text("\n".join(lines) + "\n")
