import torch
import torch.nn.functional as F

from modules import SharedLM

TEXT = "the quick brown fox jumps over the lazy dog while the slow grey wolf sleeps under the old oak tree. " * 60


def main(steps=200, width=48, micro=8, accum=2):
    torch.manual_seed(3)
    chars = sorted(set(TEXT))
    ids = torch.tensor([chars.index(c) for c in TEXT])
    train, val = ids[:-1000], ids[-1000:]

    def batch(src, n):
        at = torch.randint(len(src) - width - 1, (n,)).tolist()
        return (torch.stack([src[a:a + width] for a in at]),
                torch.stack([src[a + 1:a + width + 1] for a in at]))

    model = SharedLM(len(chars))
    decay = [p for p in model.parameters() if p.dim() > 1]
    no_decay = [p for p in model.parameters() if p.dim() <= 1]
    opt = torch.optim.AdamW([{"params": decay, "weight_decay": 0.05},
                             {"params": no_decay, "weight_decay": 0.0}], lr=4e-3)
    for step in range(1, steps + 1):
        model.train()
        for _ in range(accum):
            x, y = batch(train, micro)
            loss = F.cross_entropy(model(x).transpose(1, 2), y)
            (loss / accum).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        opt.zero_grad()
        if step % 50 == 0:
            model.eval()
            with torch.no_grad():
                x, y = batch(val, 32)
                v = F.cross_entropy(model(x).transpose(1, 2), y)
            print(f"step {step}  train {loss.item():.3f}  val {v.item():.3f}")


if __name__ == "__main__":
    main()
