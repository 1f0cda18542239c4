import torch
from torch import nn
from torch.nn import functional as F

from lora import adapter_parameters, inject, reset_adapters


class Encoder(nn.Module):
    def __init__(self, dim=24, width=64, classes=5):
        super().__init__()
        self.lower = nn.Sequential(nn.Linear(dim, width), nn.GELU(), nn.Linear(width, width), nn.GELU())
        self.norm = nn.LayerNorm(width)
        self.top = nn.Linear(width, classes)

    def forward(self, x):
        return self.top(self.norm(self.lower(x)))


def intents(n, centres, seed):
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(len(centres), (n,), generator=g)
    return centres[y] + 0.9 * torch.randn(n, centres.shape[1], generator=g), y


def train(model, params, data, epochs, lr):
    x, y = data
    opt = torch.optim.AdamW(params, lr=lr, weight_decay=0.0)
    model.train()
    for _ in range(epochs):
        for idx in torch.randperm(len(y)).split(50):
            loss = F.cross_entropy(model(x[idx]), y[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
    return loss.item()


@torch.no_grad()
def accuracy(model, data):
    model.eval()
    return (model(data[0]).argmax(1) == data[1]).float().mean().item()


if __name__ == "__main__":
    torch.manual_seed(2)
    source = torch.randn(5, 24)
    target = source[[2, 0, 4, 1, 3]] + 0.3 * torch.randn(5, 24)
    model = Encoder()
    train(model, model.parameters(), intents(1000, source, 1), epochs=8, lr=2e-3)
    print("base on its own task", accuracy(model, intents(300, source, 2)))

    new_train, new_test = intents(600, target, 3), intents(300, target, 4)
    inject(model.requires_grad_(False))
    reset_adapters(model)
    params = adapter_parameters(model)
    print("adapter weights", sum(p.numel() for p in params), "before", accuracy(model, new_test))
    for round_ in range(4):
        loss = train(model, params, new_train, epochs=3, lr=5e-3)
        print(f"round {round_} loss {loss:.4f} accuracy {accuracy(model, new_test):.3f}")
    torch.save({n: p for n, p in model.state_dict().items() if "lora_" in n}, "adapter.pt")
