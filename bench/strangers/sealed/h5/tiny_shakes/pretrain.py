import os

import torch
import torch.nn.functional as F

from lm import CharLM, grammar_text
from stream import TokenStream

OUT = "lm_state.pt"
MAX_STEPS = 160
STEPS_PER_SESSION = 80


def session():
    torch.manual_seed(1)
    text = grammar_text(16 * 32 * MAX_STEPS + 1)
    chars = sorted(set(text))
    tokens = torch.tensor([chars.index(c) for c in text])
    held_out = torch.tensor([chars.index(c) for c in grammar_text(40_000, seed=9)])[-8001:]

    model = CharLM(len(chars))
    opt = torch.optim.AdamW(model.parameters(), lr=4e-3)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, MAX_STEPS, eta_min=4e-4)
    stream = TokenStream(tokens, batch=16, block=32)
    step = 0
    if os.path.exists(OUT):
        s = torch.load(OUT)
        model.load_state_dict(s["model"])
        opt.load_state_dict(s["opt"])
        sched.load_state_dict(s["sched"])
        stream.seek(s["cursor"])
        step = s["step"]
        print(f"back at step {step}, token {stream.tell():,}")

    end = min(MAX_STEPS, step + STEPS_PER_SESSION)
    for x, y in stream:
        loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
        opt.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        sched.step()
        step += 1
        if step % 40 == 0:
            with torch.no_grad():
                hx, hy = held_out[:-1].view(50, -1), held_out[1:].view(50, -1)
                val = F.cross_entropy(model(hx).flatten(0, 1), hy.flatten())
            print(f"step {step:4d} token {stream.tell():>8,} loss {loss.item():.3f} held-out {val.item():.3f}")
        if step == end:
            break
    torch.save({"model": model.state_dict(), "opt": opt.state_dict(), "sched": sched.state_dict(),
                "cursor": stream.tell(), "step": step}, OUT)
    return step


if __name__ == "__main__":
    while session() < MAX_STEPS:
        print("session over")
    os.remove(OUT)
