"""Mixed precision without GradScaler: my own scale, so that I see what happens."""
import torch
from sklearn.datasets import load_digits
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class LossScale:
    def __init__(self, value=2.0**15, grow_every=50):
        self.value, self.grow_every, self.clean = value, grow_every, 0

    def after(self, overflow):
        if overflow:
            self.value, self.clean = self.value / 2, 0
        else:
            self.clean += 1
            if self.clean % self.grow_every == 0:
                self.value *= 2


def backward_and_step(loss, net, optimizer, scale):
    (loss * scale.value).backward()
    overflow = False
    for p in net.parameters():
        p.grad.div_(scale.value)
        overflow |= not torch.isfinite(p.grad).all().item()
    if not overflow:
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    scale.after(overflow)
    return overflow


def main():
    torch.manual_seed(0)
    digits = load_digits()
    x = torch.tensor(digits.data, dtype=torch.float32, device=device) / 16
    y = torch.tensor(digits.target, device=device)
    perm = torch.randperm(len(x))
    train, test = perm[:1400], perm[1400:]
    net = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 10)).to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    scale = LossScale()
    for epoch in range(6):
        skipped, total = 0, 0.0
        batches = train[torch.randperm(len(train))].split(50)
        for idx in batches:
            with torch.autocast(device.type, dtype=torch.float16):
                logits = net(x[idx])
            loss = nn.functional.cross_entropy(logits.float(), y[idx])
            skipped += backward_and_step(loss, net, optimizer, scale)
            total += loss.item()
        with torch.no_grad():
            acc = (net(x[test]).argmax(1) == y[test]).float().mean().item()
        print(f"epoch {epoch} loss {total / len(batches):.4f} test {acc:.3f} skipped {skipped} scale 2^{torch.tensor(scale.value).log2().item():.0f}")


if __name__ == "__main__":
    main()
