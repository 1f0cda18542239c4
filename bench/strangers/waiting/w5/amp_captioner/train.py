import torch
import torch.nn.functional as F

from net import Captioner

DEV = "cuda" if torch.cuda.is_available() else "cpu"
BOS, EOS, VOCAB, ACCUM = 0, 1, 18, 2
torch.manual_seed(0)
patterns = torch.randn(16, 48)


def batch(n=32):
    kinds = torch.randint(16, (n, 4))
    img = patterns[kinds] * 3 + 0.3 * torch.randn(n, 4, 48)
    words = kinds.sort(1).values + 2
    cap = torch.cat([torch.full((n, 1), BOS), words, torch.full((n, 1), EOS)], 1)
    return img.to(DEV), cap.to(DEV)


model = Captioner(VOCAB).to(DEV)
opt = torch.optim.AdamW(model.parameters(), lr=2e-3)
scaler = torch.amp.GradScaler(DEV, init_scale=2.0 ** 12)

for step in range(150):
    opt.zero_grad(set_to_none=True)
    shown = 0.0
    for _ in range(ACCUM):
        img, cap = batch()
        with torch.autocast(DEV, dtype=torch.float16):
            logits = model(img, cap[:, :-1])
        loss = F.cross_entropy(logits.float().flatten(0, 1), cap[:, 1:].flatten()) / ACCUM
        scaler.scale(loss).backward()
        shown += loss.item()
    scaler.unscale_(opt)
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(opt)
    scaler.update()
    if step % 25 == 0 or step == 149:
        print(step, f"{shown:.3f}", "scale", scaler.get_scale())
