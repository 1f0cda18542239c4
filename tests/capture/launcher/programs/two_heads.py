"""Two tasks take turns: on each step one head and its optimizer rest."""

import torch
from torch import nn

torch.manual_seed(44)
x = torch.randn(1000, 16)
kind = (x @ torch.randn(16, 3)).argmax(1)
size = (x @ torch.randn(16, 1)) / 4


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(16, 64), nn.ReLU())
        self.classify = nn.Linear(64, 3)
        self.measure = nn.Linear(64, 1)

    def forward(self, x, task):
        return getattr(self, task)(self.trunk(x))


model = Net()
optimizers = {
    task: torch.optim.Adam([*model.trunk.parameters(), *head.parameters()], lr=2e-3)
    for task, head in (("classify", model.classify), ("measure", model.measure))
}
for step in range(400):
    index = torch.randint(0, 1000, (50,))
    task = "classify" if step % 2 else "measure"
    out = model(x[index], task)
    if task == "classify":
        loss = nn.functional.cross_entropy(out, kind[index])
    else:
        loss = nn.functional.mse_loss(out, size[index])
    model.zero_grad()
    loss.backward()
    optimizers[task].step()
    if step % 20 < 2:
        print(f"step {step} {task} {loss.item()!r}")
