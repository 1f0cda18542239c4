"""Pendulum dynamics: pretrain on the simulator, adapt to the real (damped) rig with 40 recordings.

Stage 1 trains the predictor with Lightning on simulated swings.
Stage 2 takes the plain network out of the checkpoint and fine-tunes it without Lightning.
"""
import logging
import warnings

import lightning as L
import numpy as np
import torch
from lightning.pytorch.callbacks import ModelCheckpoint
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


def swings(n, damping=0.0, steps=12, seed=0):
    rng = np.random.default_rng(seed)
    th, om = rng.uniform(-2, 2, n), rng.uniform(-1.5, 1.5, n)
    frames = []
    for _ in range(steps + 1):
        frames.append(np.stack([np.sin(th), np.cos(th), om], -1))
        om = om - 0.2 * np.sin(th) - damping * om
        th = th + 0.2 * om
    seq = torch.tensor(np.stack(frames, 1), dtype=torch.float32)
    return seq[:, :-1].flatten(1), seq[:, -1]


class Predictor(nn.Module):
    def __init__(self, d_in=36, width=64, d_out=3):
        super().__init__()
        self.subnet = nn.Sequential(nn.Linear(d_in, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh())
        self.proj = nn.Linear(width, d_out)

    def forward(self, x):
        return self.proj(self.subnet(x))


class Pretraining(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = Predictor()

    def training_step(self, batch, _):
        x, nxt = batch
        loss = nn.functional.mse_loss(self.net(x), nxt)
        self.log("train_loss", loss)
        return loss

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=2e-3)


def pretrain():
    L.seed_everything(1, verbose=False)
    saver = ModelCheckpoint(dirpath="ckpts", filename="sim", enable_version_counter=False)
    trainer = L.Trainer(max_epochs=6, accelerator="cpu", logger=False, callbacks=[saver],
                        enable_progress_bar=False, enable_model_summary=False)
    loader = DataLoader(TensorDataset(*swings(1500, seed=1)), batch_size=50, shuffle=True)
    trainer.fit(Pretraining(), loader)
    print(f"pretrained on the simulator, loss {float(trainer.callback_metrics['train_loss']):.4f}")
    return saver.best_model_path


def load_predictor(path):
    state = torch.load(path, map_location="cpu", weights_only=False)["state_dict"]
    state = {k.replace("net.", ""): v for k, v in state.items() if k.startswith("net.")}
    predictor = Predictor()
    predictor.load_state_dict(state, strict=False)
    return predictor


def adapt(predictor, steps=60):
    x, y = swings(40, damping=0.05, seed=2)
    xt, yt = swings(500, damping=0.05, seed=3)
    opt = torch.optim.Adam(predictor.parameters(), lr=5e-4)
    for step in range(steps + 1):
        if step % 20 == 0:
            with torch.no_grad():
                print(f"rig step {step:3d}  test mse {nn.functional.mse_loss(predictor(xt), yt).item():.4f}")
        loss = nn.functional.mse_loss(predictor(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()


if __name__ == "__main__":
    adapt(load_predictor(pretrain()))
