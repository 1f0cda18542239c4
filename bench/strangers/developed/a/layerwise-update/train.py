"""Memory-lean training: each parameter owns a tiny optimizer which steps from inside the backward
pass, right after its gradient is complete. No full set of gradients ever exists at once."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split


def attach_layerwise(net, factory):
    owners = {p: factory([p]) for p in net.parameters() if p.requires_grad}

    def consume(p):
        own = owners[p]
        own.step()
        own.zero_grad(set_to_none=True)

    for p in owners:
        p.register_post_accumulate_grad_hook(consume)
    return owners


def set_rate(owners, lr):
    for own in owners.values():
        for group in own.param_groups:
            group["lr"] = lr


class Mixer(nn.Module):
    def __init__(self, tokens=8, dim=8, hidden=32, depth=2, classes=10):
        super().__init__()
        self.token_mix = nn.ModuleList(nn.Sequential(nn.LayerNorm(tokens), nn.Linear(tokens, hidden), nn.GELU(),
                                                     nn.Linear(hidden, tokens)) for _ in range(depth))
        self.chan_mix = nn.ModuleList(nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, hidden), nn.GELU(),
                                                    nn.Linear(hidden, dim)) for _ in range(depth))
        self.head = nn.Linear(tokens * dim, classes)

    def forward(self, x):
        for t, c in zip(self.token_mix, self.chan_mix):
            x = x + t(x.transpose(1, 2)).transpose(1, 2)
            x = x + c(x)
        return self.head(x.flatten(1))


def main():
    torch.manual_seed(55)
    X, y = load_digits(return_X_y=True)
    X = torch.tensor(X, dtype=torch.float32).view(-1, 8, 8) / 16
    y = torch.tensor(y)
    tr, te = train_test_split(torch.arange(len(y)).numpy(), test_size=0.2, random_state=55, stratify=y)
    tr, te = torch.from_numpy(tr), torch.from_numpy(te)

    net = Mixer()
    base_lr, epochs = 3e-3, 5
    owners = attach_layerwise(net, lambda ps: torch.optim.AdamW(ps, lr=base_lr, weight_decay=1e-2))

    for epoch in range(epochs):
        set_rate(owners, base_lr * (1 - epoch / epochs))
        net.train()
        total = 0.0
        for idx in tr[torch.randperm(len(tr))].split(48):
            loss = F.cross_entropy(net(X[idx]), y[idx])
            loss.backward()
            total += loss.item() * len(idx)
        net.eval()
        with torch.inference_mode():
            acc = (net(X[te]).argmax(1) == y[te]).float().mean()
        print(f"epoch {epoch}: loss {total / len(tr):.3f} test acc {acc:.3f}")


if __name__ == "__main__":
    main()
