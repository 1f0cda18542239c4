import os

import torch
from sklearn.datasets import make_moons

from amp_utils import LossScaler
from diffusion import Denoiser, Diffusion

STEPS = int(os.environ.get("STEPS", 400))
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def main():
    torch.manual_seed(77)
    points, _ = make_moons(2000, noise=0.05, random_state=77)
    points = torch.tensor(points, dtype=torch.float32)
    train, held = points[:1600].to(DEVICE), points[1600:].to(DEVICE)
    mean, std = train.mean(0), train.std(0)
    train, held = (train - mean) / std, (held - mean) / std

    model, diff = Denoiser().to(DEVICE), Diffusion().to(DEVICE)
    opt = torch.optim.AdamW(model.parameters(), lr=2e-3)
    loss_scaler = LossScaler("cuda", enabled=DEVICE == "cuda")

    for step in range(1, STEPS + 1):
        model.train()
        batch = train[torch.randint(0, len(train), (128,), device=DEVICE)]
        with torch.autocast(DEVICE, dtype=torch.float16, enabled=DEVICE == "cuda"):
            loss = diff.noise_loss(model, batch)
        opt.zero_grad()
        loss_scaler(loss, opt, clip_grad=1.0, parameters=model.parameters())
        if step % 100 == 0:
            model.eval()
            with torch.no_grad():
                v = sum(diff.noise_loss(model, held).item() for _ in range(5)) / 5
            print(f"step {step}  train {loss.item():.3f}  held-out {v:.3f}")

    model.eval()
    x = diff.sample(model, 500, DEVICE) * std + mean
    print("samples mean", x.mean(0).tolist(), "std", x.std(0).tolist())


if __name__ == "__main__":
    main()
