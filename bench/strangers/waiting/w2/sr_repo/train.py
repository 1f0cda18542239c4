import math

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits

from models.espcn import ESPCN


def load_pairs(scale):
    hr = torch.tensor(load_digits().images, dtype=torch.float32).unsqueeze(1) / 16.0
    hr = F.interpolate(hr, size=16, mode="bicubic", align_corners=False).clamp(0, 1)
    lr = F.avg_pool2d(hr, scale)
    return lr, hr


def psnr(a, b):
    return -10 * math.log10(F.mse_loss(a, b).item() + 1e-12)


def main(scale=2, epochs=6, batch_size=64):
    torch.manual_seed(0)
    lr, hr = load_pairs(scale)
    lr_tr, hr_tr, lr_te, hr_te = lr[:1500], hr[:1500], lr[1500:], hr[1500:]

    model = ESPCN(scale=scale)
    print(f"{model.name}: {model.n_params()} parameters")
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    for epoch in range(epochs):
        model.train()
        for idx in torch.randperm(len(lr_tr)).split(batch_size):
            loss = F.l1_loss(model(lr_tr[idx]), hr_tr[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            print(f"epoch {epoch}: PSNR {psnr(model(lr_te).clamp(0, 1), hr_te):.2f} dB")


if __name__ == "__main__":
    main()
