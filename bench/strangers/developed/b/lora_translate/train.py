"""Pretrain a base model on one mapping, then adapt only low-rank weights to another one. Adapter runs can be resumed.

Only the adapter weights are written; they are small, and the base model has a file of its own.
"""
import argparse
import os
import tempfile

import torch
import torch.nn.functional as F

from data import IGNORE, VOCAB, collate, examples
from model import DecoderLM, add_lora


def answer_loss(net, ids, labels):
    logits = net(ids[:, :-1])
    return F.cross_entropy(logits.reshape(-1, VOCAB), labels[:, 1:].reshape(-1), ignore_index=IGNORE)


@torch.no_grad()
def exact(net, rows):
    net.eval()
    ids, labels = collate(rows)
    gold = labels[:, 1:]
    right = (net(ids[:, :-1]).argmax(-1) == gold) | (gold == IGNORE)
    return right.all(1).float().mean().item()


def fit(net, rows, held, steps, lr, gen, ckpt=None, every=50, bs=32):
    """The batch of a step is a function of `gen`, whose state goes into the checkpoint."""
    train_params = {k: p for k, p in net.named_parameters() if p.requires_grad}
    opt = torch.optim.AdamW(train_params.values(), lr, weight_decay=0.0)
    sched = torch.optim.lr_scheduler.LinearLR(opt, 1.0, 0.1, steps)
    start = 0
    if ckpt and os.path.exists(ckpt):
        state = torch.load(ckpt, weights_only=True)
        missing, unexpected = net.load_state_dict(state["adapter"], strict=False)
        assert not unexpected and not set(missing) & set(train_params), "adapter does not fit the model"
        opt.load_state_dict(state["opt"])
        sched.load_state_dict(state["sched"])
        gen.set_state(state["gen"])
        start = state["step"]
    for step in range(start + 1, steps + 1):
        net.train()
        pick = torch.randint(0, len(rows), (bs,), generator=gen).tolist()
        loss = answer_loss(net, *collate([rows[i] for i in pick]))
        opt.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(train_params.values(), 1.0)
        opt.step()
        sched.step()
        if step % every == 0:
            print(f"step {step} loss {loss.item():.3f} exact match {exact(net, held):.3f}")
            if ckpt:
                adapter = {k: p.detach() for k, p in train_params.items()}
                torch.save(
                    {"adapter": adapter, "opt": opt.state_dict(), "sched": sched.state_dict(),
                     "gen": gen.get_state(), "step": step}, ckpt)
    return net


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--out", default=None, help="folder for base.pt and adapter.pt")
    p.add_argument("--base-steps", type=int, default=200)
    p.add_argument("--steps", type=int, default=150)
    a = p.parse_args()
    torch.manual_seed(60)
    out = a.out or tempfile.mkdtemp()
    os.makedirs(out, exist_ok=True)
    base_path = os.path.join(out, "base.pt")
    gen = lambda: torch.Generator().manual_seed(60)
    net = DecoderLM(VOCAB)
    if os.path.exists(base_path):
        net.load_state_dict(torch.load(base_path, weights_only=True))
    else:
        fit(net, examples(2000, 1, shift=0), examples(200, 2, shift=0), a.base_steps, 3e-3, gen(), every=100)
        torch.save(net.state_dict(), base_path)
    print("-- adapter")
    add_lora(net)
    adapter = os.path.join(out, "adapter.pt")
    fit(net, examples(1000, 3, shift=3), examples(200, 4, shift=3), a.steps, 1e-2, gen(), ckpt=adapter)


if __name__ == "__main__":
    main()
