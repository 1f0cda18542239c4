"""Low-rank adapters: a tiny share of the parameters is trained, one factor starts at zero."""

import torch
from torch import nn


class LoRALinear(nn.Module):
    def __init__(self, linear, rank=2):
        super().__init__()
        self.linear = linear
        for p in linear.parameters():
            p.requires_grad = False
        self.lora_a = nn.Parameter(torch.randn(rank, linear.in_features) / rank)
        self.lora_b = nn.Parameter(torch.zeros(linear.out_features, rank))

    def forward(self, x):
        return self.linear(x) + x @ self.lora_a.T @ self.lora_b.T


torch.manual_seed(16)
model = nn.Sequential(
    LoRALinear(nn.Linear(64, 256)), nn.ReLU(), LoRALinear(nn.Linear(256, 256)), nn.ReLU(),
    LoRALinear(nn.Linear(256, 3)),
)  # fmt: skip
x = torch.randn(1200, 64)
y = (x @ torch.randn(64, 3)).argmax(1)
trainable = [p for p in model.parameters() if p.requires_grad]
print(
    f"trainable {sum(p.numel() for p in trainable)} of {sum(p.numel() for p in model.parameters())}"
)
optimizer = torch.optim.AdamW(trainable, lr=5e-3)
for step in range(300):
    index = torch.randint(0, 1200, (64,))
    loss = nn.functional.cross_entropy(model(x[index]), y[index])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 20 == 0:
        print(f"step {step} loss {loss.item()!r}")
