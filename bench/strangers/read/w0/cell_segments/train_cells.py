from __future__ import annotations

import argparse

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset


def cells(n: int, seed: int, side: int = 32) -> TensorDataset:
    g = torch.Generator().manual_seed(seed)
    yy, xx = torch.meshgrid(torch.arange(side), torch.arange(side), indexing="ij")
    mask = torch.zeros(n, side, side)
    for _ in range(5):
        c = torch.rand(n, 2, 1, 1, generator=g) * side
        r = 2 + 3 * torch.rand(n, 1, 1, generator=g)
        mask = torch.maximum(mask, (((yy - c[:, 0]) ** 2 + (xx - c[:, 1]) ** 2) < r**2).float())
    image = 0.8 * mask + 0.4 * torch.randn(n, side, side, generator=g)
    return TensorDataset(image[:, None], mask[:, None])


class SegNet(nn.Module):
    def __init__(self, c: int = 16) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(1, c, 3, padding=1), nn.GroupNorm(4, c), nn.ReLU(),
                                 nn.Conv2d(c, c, 3, padding=2, dilation=2), nn.GroupNorm(4, c), nn.ReLU(),
                                 nn.Conv2d(c, 1, 1))

    def forward(self, x: Tensor) -> Tensor:
        return self.net(x)


class AmpStepper:
    """Owns everything between loss and weights: scaling, accumulation, clipping."""

    def __init__(self, model: nn.Module, opt: torch.optim.Optimizer, every: int, clip: float, amp: bool) -> None:
        self.model, self.opt, self.every, self.clip = model, opt, every, clip
        self.scaler = torch.amp.GradScaler("cuda", enabled=amp)
        self.seen = 0
        opt.zero_grad(set_to_none=True)

    def __call__(self, loss: Tensor) -> bool:
        self.scaler.scale(loss / self.every).backward()
        self.seen += 1
        if self.seen % self.every:
            return False
        self.scaler.unscale_(self.opt)
        nn.utils.clip_grad_norm_(self.model.parameters(), self.clip)
        before = self.scaler.get_scale()
        self.scaler.step(self.opt)
        self.scaler.update()
        self.opt.zero_grad(set_to_none=True)
        return self.scaler.get_scale() >= before


@torch.no_grad()
def iou(model: nn.Module, loader: DataLoader, device: torch.device) -> float:
    model.eval()
    inter = union = torch.zeros((), device=device)
    for x, m in loader:
        p, m = model(x.to(device)) > 0, m.to(device) > 0.5
        inter, union = inter + (p & m).sum(), union + (p | m).sum()
    return (inter / union).item()


def main() -> None:
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=4)
    ap.add_argument("--micro-batch", type=int, default=8)
    ap.add_argument("--accumulate", type=int, default=2)
    ap.add_argument("--lr", type=float, default=5e-3)
    a = ap.parse_args()
    torch.manual_seed(28)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    amp = device.type == "cuda"
    train = DataLoader(cells(256, 1), a.micro_batch, shuffle=True, drop_last=True, pin_memory=amp)
    test = DataLoader(cells(64, 2), 32, pin_memory=amp)
    model = SegNet().to(device)
    opt = torch.optim.AdamW(model.parameters(), lr=a.lr)
    advance = AmpStepper(model, opt, a.accumulate, 1.0, amp)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, a.epochs * len(train) // a.accumulate)
    for epoch in range(a.epochs):
        model.train()
        total = torch.zeros((), device=device)
        for x, m in train:
            x, m = x.to(device, non_blocking=True), m.to(device, non_blocking=True)
            with torch.autocast(device.type, dtype=torch.float16, enabled=amp):
                logits = model(x)
            loss = nn.functional.binary_cross_entropy_with_logits(logits.float(), m)
            if advance(loss):
                sched.step()
            total += loss.detach()
        print(f"epoch {epoch} loss {total.item() / len(train):.4f} iou {iou(model, test, device):.3f}")


if __name__ == "__main__":
    main()
