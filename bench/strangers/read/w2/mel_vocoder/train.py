"""Mel -> waveform regression toy, half precision with loss scaling."""
from types import SimpleNamespace

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from callbacks import CallbackList, ClipGradients, LossMeter, UnscaleGradients

HOP = 8


def make_audio(n, seed):
    g = torch.Generator().manual_seed(seed)
    frames = 16
    f0 = 0.05 + 0.2 * torch.rand(n, 1, generator=g)
    t = torch.arange(frames * HOP).float()
    wave = torch.sin(f0 * t) + 0.3 * torch.sin(2 * f0 * t)
    mel = torch.stack([wave.view(n, frames, HOP).mean(-1), wave.view(n, frames, HOP).std(-1),
                       wave.view(n, frames, HOP)[..., 0], wave.view(n, frames, HOP)[..., -1]], 1)
    return mel, wave.unsqueeze(1)


class Vocoder(nn.Module):
    def __init__(self, c=32):
        super().__init__()
        self.pre = nn.Conv1d(4, c, 5, padding=2)
        self.up = nn.ConvTranspose1d(c, c, HOP * 2, stride=HOP, padding=HOP // 2)
        self.post = nn.Conv1d(c, 1, 7, padding=3)

    def forward(self, mel):
        h = nn.functional.leaky_relu(self.pre(mel), 0.1)
        h = nn.functional.leaky_relu(self.up(h), 0.1)
        return self.post(h)


def main():
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    train = DataLoader(TensorDataset(*make_audio(512, 1)), batch_size=32, shuffle=True)
    val_mel, val_wave = (t.to(device) for t in make_audio(64, 2))

    model = Vocoder().to(device)
    state = SimpleNamespace(
        model=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9),
        scaler=torch.amp.GradScaler(device, init_scale=2.0 ** 12),
        step=0, loss=0.0,
    )
    hooks = CallbackList([LossMeter(every=16), UnscaleGradients(), ClipGradients(max_norm=1.0)])

    for epoch in range(4):
        model.train()
        for mel, wave in train:
            mel, wave = mel.to(device), wave.to(device)
            state.optimizer.zero_grad(set_to_none=True)
            with torch.autocast(device, dtype=torch.float16):
                pred = model(mel)
            loss = nn.functional.l1_loss(pred.float(), wave)
            state.scaler.scale(loss).backward()
            hooks.fire("before_step", state)
            state.scaler.step(state.optimizer)
            state.scaler.update()
            state.step += 1
            state.loss = loss.item()
            hooks.fire("after_step", state)
        model.eval()
        with torch.no_grad():
            print(f"epoch {epoch} val l1 {nn.functional.l1_loss(model(val_mel), val_wave).item():.4f}")


if __name__ == "__main__":
    main()
