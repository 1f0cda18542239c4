import argparse

import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

from optim_utils import build_optimizer, take_step
from tagger import ConvTagger, synthetic_corpus

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=3)
parser.add_argument("--lr", type=float, default=5e-3)
parser.add_argument("--accum", type=int, default=2)
parser.add_argument("--max-norm", type=float, default=5.0)
parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
args = parser.parse_args()

torch.manual_seed(0)
train_loader = DataLoader(TensorDataset(*synthetic_corpus(1600)), batch_size=32, shuffle=True)
dev_loader = DataLoader(TensorDataset(*synthetic_corpus(200, seed=1)), batch_size=100)

model = ConvTagger(200, 6).to(args.device)
optimizer = build_optimizer(model, args.lr, 0.01)
steps = args.epochs * (len(train_loader) // args.accum)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=steps)
scaler = torch.amp.GradScaler(args.device)

for epoch in range(args.epochs):
    model.train()
    for i, (x, y) in enumerate(train_loader):
        x, y = x.to(args.device), y.to(args.device)
        with torch.autocast(args.device, dtype=torch.float16):
            logits = model(x)
            loss = F.cross_entropy(logits.flatten(0, 1).float(), y.flatten(), ignore_index=-100) / args.accum
        scaler.scale(loss).backward()
        if (i + 1) % args.accum == 0:
            scaler.unscale_(optimizer)
            take_step(model, optimizer, scheduler, args.max_norm)
            scaler.update()

    model.eval()
    hit = n = 0
    with torch.inference_mode():
        for x, y in dev_loader:
            pred = model(x.to(args.device)).argmax(-1).cpu()
            keep = y != -100
            hit += (pred[keep] == y[keep]).sum().item()
            n += keep.sum().item()
    print(f"epoch {epoch} loss {loss.item() * args.accum:.4f} dev acc {hit / n:.4f}")
