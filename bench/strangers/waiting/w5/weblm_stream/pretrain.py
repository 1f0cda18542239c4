import argparse
import contextlib
import math
import os
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader
from transformers import GPT2Config, GPT2LMHeadModel

from stream import TokenStream


def lr_at(step, args):
    if step < args.warmup:
        return args.lr * (step + 1) / args.warmup
    t = (step - args.warmup) / max(1, args.steps - args.warmup)
    return 0.1 * args.lr + 0.45 * args.lr * (1 + math.cos(math.pi * min(1.0, t)))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--data", required=True)
    ap.add_argument("--block", type=int, default=1024)
    ap.add_argument("--micro-batch", type=int, default=8)
    ap.add_argument("--accum", type=int, default=8)
    ap.add_argument("--steps", type=int, default=60000)
    ap.add_argument("--warmup", type=int, default=700)
    ap.add_argument("--lr", type=float, default=6e-4)
    args = ap.parse_args()

    dist.init_process_group("nccl")
    rank, world = dist.get_rank(), dist.get_world_size()
    local = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local)
    torch.manual_seed(1234)
    torch.set_float32_matmul_precision("high")

    model = GPT2LMHeadModel(GPT2Config(n_positions=args.block, vocab_size=50304)).cuda()
    model = DistributedDataParallel(model, device_ids=[local])
    decay = [p for p in model.parameters() if p.dim() >= 2]
    rest = [p for p in model.parameters() if p.dim() < 2]
    opt = torch.optim.AdamW([{"params": decay, "weight_decay": 0.1}, {"params": rest, "weight_decay": 0.0}],
                            lr=args.lr, betas=(0.9, 0.95), fused=True)

    loader = iter(DataLoader(TokenStream(args.data, args.block), batch_size=args.micro_batch, num_workers=2, pin_memory=True))
    t0 = time.time()
    for step in range(args.steps):
        for g in opt.param_groups:
            g["lr"] = lr_at(step, args)
        total = torch.zeros((), device="cuda")
        for micro in range(args.accum):
            x, y = next(loader)
            x, y = x.cuda(non_blocking=True), y.cuda(non_blocking=True)
            sync = contextlib.nullcontext() if micro == args.accum - 1 else model.no_sync()
            with sync:
                with torch.autocast("cuda", dtype=torch.bfloat16):
                    logits = model(input_ids=x).logits
                    loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), y.flatten()) / args.accum
                loss.backward()
            total += loss.detach()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        opt.zero_grad(set_to_none=True)
        if step % 20 == 0:
            dist.all_reduce(total, op=dist.ReduceOp.AVG)
            if rank == 0:
                tok = args.micro_batch * args.accum * world * args.block
                print(f"step {step} loss {total.item():.4f} {tok * 20 / (time.time() - t0):.0f} tok/s", flush=True)
            t0 = time.time()
        if rank == 0 and step and step % 5000 == 0:
            torch.save({"model": model.module.state_dict(), "step": step}, f"ckpt_{step}.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
