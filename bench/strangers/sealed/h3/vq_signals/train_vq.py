import torch
import torch.nn.functional as F

from autoencoder import VQAutoencoder


def waves(n, seed):
    g = torch.Generator().manual_seed(seed)
    t = torch.linspace(0, 1, 64)
    f = torch.randint(1, 5, (n, 1), generator=g)
    ph = torch.rand(n, 1, generator=g) * 6.28
    w = torch.sin(6.28 * f * t + ph)
    square = torch.rand(n, 1, generator=g) < 0.5
    return torch.where(square, w.sign(), w).unsqueeze(1)


def main():
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    train, valid = waves(800, 0).to(device), waves(200, 1).to(device)
    model = VQAutoencoder().to(device)
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(8):
        model.train()
        for x in train[torch.randperm(len(train), device=device)].split(50):
            out, commit, _ = model(x)
            loss = F.mse_loss(out, x) + commit
            opt.zero_grad()
            loss.backward()
            opt.step()
        model.eval()
        with torch.no_grad():
            out, _, pick = model(valid)
            mse = F.mse_loss(out, valid).item()
        print(f"epoch {epoch} valid mse {mse:.4f} codes used {pick.unique().numel()}")


if __name__ == "__main__":
    main()
