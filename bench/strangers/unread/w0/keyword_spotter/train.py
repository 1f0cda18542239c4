import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader

from audio import KEYWORDS, SyntheticKeywords, log_spectrogram
from model import Spotter

torch.manual_seed(0)
device = "cuda" if torch.cuda.is_available() else "cpu"
train_dl = DataLoader(SyntheticKeywords(320, seed=1), batch_size=32, shuffle=True)
test_dl = DataLoader(SyntheticKeywords(96, seed=2), batch_size=32)
net = Spotter(n_freq=33, n_classes=len(KEYWORDS)).to(device)
opt = torch.optim.AdamW(net.parameters(), lr=2e-3)

for epoch in range(4):
    net.train()
    for wave, y in train_dl:
        logits = net(log_spectrogram(wave.to(device)))
        loss = F.cross_entropy(logits, y.to(device))
        opt.zero_grad()
        loss.backward()
        opt.step()
    net.eval()
    hits = 0
    with torch.no_grad():
        for wave, y in test_dl:
            hits += (net(log_spectrogram(wave.to(device))).argmax(1).cpu() == y).sum().item()
    print(f"epoch {epoch}  test accuracy {hits / len(test_dl.dataset):.3f}")
