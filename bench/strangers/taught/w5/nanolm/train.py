import torch

from model import NanoLM

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(1337)

text = open(__file__).read() * 20
chars = sorted(set(text))
stoi = {c: i for i, c in enumerate(chars)}
data = torch.tensor([stoi[c] for c in text])
cut = int(0.9 * len(data))
splits = {"train": data[:cut], "val": data[cut:]}
BLOCK, BATCH = 64, 16


def get_batch(split):
    d = splits[split]
    ix = torch.randint(len(d) - BLOCK - 1, (BATCH,))
    x = torch.stack([d[i:i + BLOCK] for i in ix])
    y = torch.stack([d[i + 1:i + BLOCK + 1] for i in ix])
    return x.to(device), y.to(device)


model = NanoLM(len(chars), block=BLOCK).to(device)
opt = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.95), weight_decay=0.1)
scaler = torch.amp.GradScaler(device)
amp = torch.autocast(device_type=device, dtype=torch.float16)


@torch.no_grad()
def estimate_loss(iters=5):
    model.eval()
    out = {}
    for split in splits:
        tot = 0.0
        for _ in range(iters):
            with amp:
                tot += model(*get_batch(split))[1].item()
        out[split] = tot / iters
    model.train()
    return out


for step in range(100):
    if step % 50 == 0:
        print(step, estimate_loss())
    with amp:
        _, loss = model(*get_batch("train"))
    opt.zero_grad(set_to_none=True)
    scaler.scale(loss).backward()
    scaler.unscale_(opt)
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(opt)
    scaler.update()
print("final", estimate_loss())
