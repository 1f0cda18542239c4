import argparse
import os

import torch
import torch.distributed as dist
import torch.nn as nn

from sync import broadcast_weights, mean_gradients
from turbines import power_curve


def main(args):
    for k, v in {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29634"}.items():
        os.environ.setdefault(k, v)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(args.seed + rank)

    x, y = power_curve(4096, seed=0)
    x, y = x[rank::world], y[rank::world]
    x_val, y_val = power_curve(1000, seed=1)

    net = nn.Sequential(nn.Linear(4, 64), nn.SiLU(), nn.Linear(64, 64), nn.SiLU(), nn.Linear(64, 1))
    broadcast_weights(net)
    opt = torch.optim.Adam(net.parameters(), lr=args.lr)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, args.epochs)

    for epoch in range(args.epochs):
        net.train()
        for batch in torch.randperm(len(x)).split(args.batch):
            jitter = args.noise * torch.randn(len(batch), 4)
            loss = nn.functional.huber_loss(net(x[batch] + jitter).squeeze(-1), y[batch], delta=0.1)
            opt.zero_grad()
            loss.backward()
            mean_gradients(net)
            opt.step()
        sched.step()
        net.eval()
        with torch.no_grad():
            mae = (net(x_val).squeeze(-1) - y_val).abs().mean().item()
        if epoch % 3 == 2:
            print(f"rank {rank} epoch {epoch + 1:2d} val mae {mae:.4f} |w| {net[2].weight.norm().item():.4f}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=9)
    p.add_argument("--batch", type=int, default=64)
    p.add_argument("--lr", type=float, default=1e-2)
    p.add_argument("--noise", type=float, default=0.01)
    p.add_argument("--seed", type=int, default=42)
    main(p.parse_args())
