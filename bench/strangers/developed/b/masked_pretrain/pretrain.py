import torch
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from nets import Encoder, MaskedAutoencoder


def pretrain(x, path, epochs=15, bs=128, lr=2e-3):
    mae = MaskedAutoencoder(Encoder())
    ema = AveragedModel(mae, multi_avg_fn=get_ema_multi_avg_fn(0.98))
    opt = torch.optim.AdamW(mae.parameters(), lr)
    mae.train()
    for ep in range(epochs):
        for idx in torch.randperm(len(x)).split(bs):
            opt.zero_grad()
            loss = mae(x[idx])
            loss.backward()
            opt.step()
            ema.update_parameters(mae)
    print(f"pretraining done, reconstruction loss {loss.item():.4f}")
    torch.save({"weights": ema.state_dict(), "epochs": epochs}, path)
