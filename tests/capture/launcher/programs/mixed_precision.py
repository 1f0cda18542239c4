"""Mixed precision on the CPU: autocast to bfloat16 and a gradient scaler."""

import torch
from torch import nn

torch.manual_seed(21)
x = torch.randn(2000, 32)
y = (x @ torch.randn(32, 6)).argmax(1)
model = nn.Sequential(nn.Linear(32, 128), nn.ReLU(), nn.LayerNorm(128), nn.Linear(128, 6))
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
scaler = torch.amp.GradScaler("cpu")
for step in range(250):
    index = torch.randint(0, 2000, (64,))
    optimizer.zero_grad(set_to_none=True)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = nn.functional.cross_entropy(model(x[index]), y[index])
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
    if step % 25 == 0:
        print(f"step {step} loss {loss.item()!r} scale {scaler.get_scale()!r}")
