"""
Speech command recognition with the M5 network
==============================================
Adapted from the audio tutorial to synthetic 'keywords' (chirps), so that it runs anywhere.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(42)

labels = ["up", "down", "flat", "warble"]
SR = 800


def synth_keyword(label, g):
    t = torch.linspace(0, 1, SR)
    f0 = 20 + 20 * torch.rand(1, generator=g)
    curve = {"up": 40 * t, "down": -15 * t, "flat": 0 * t, "warble": 8 * torch.sin(30 * t)}[label]
    wave = torch.sin(2 * torch.pi * (f0 + curve) * t + 6.28 * torch.rand(1, generator=g))
    return wave + 0.3 * torch.randn(SR, generator=g)


def make_split(n, seed):
    g = torch.Generator().manual_seed(seed)
    return [(synth_keyword(labels[i % len(labels)], g), labels[i % len(labels)]) for i in range(n)]


def label_to_index(word):
    return torch.tensor(labels.index(word))


def collate_fn(batch):
    tensors, targets = [], []
    for waveform, label in batch:
        tensors += [waveform.unsqueeze(0)]
        targets += [label_to_index(label)]
    return torch.stack(tensors), torch.stack(targets)


train_loader = torch.utils.data.DataLoader(make_split(320, 1), batch_size=32, shuffle=True, collate_fn=collate_fn)
test_loader = torch.utils.data.DataLoader(make_split(80, 2), batch_size=40, shuffle=False, collate_fn=collate_fn)


class M5(nn.Module):
    def __init__(self, n_input=1, n_output=35, stride=4, n_channel=16):
        super().__init__()
        self.conv1 = nn.Conv1d(n_input, n_channel, kernel_size=40, stride=stride)
        self.bn1 = nn.BatchNorm1d(n_channel)
        self.pool1 = nn.MaxPool1d(4)
        self.conv2 = nn.Conv1d(n_channel, n_channel, kernel_size=3)
        self.bn2 = nn.BatchNorm1d(n_channel)
        self.pool2 = nn.MaxPool1d(4)
        self.conv3 = nn.Conv1d(n_channel, 2 * n_channel, kernel_size=3)
        self.bn3 = nn.BatchNorm1d(2 * n_channel)
        self.fc1 = nn.Linear(2 * n_channel, n_output)

    def forward(self, x):
        x = self.pool1(F.relu(self.bn1(self.conv1(x))))
        x = self.pool2(F.relu(self.bn2(self.conv2(x))))
        x = F.relu(self.bn3(self.conv3(x)))
        x = F.avg_pool1d(x, x.shape[-1]).squeeze(-1)
        # raw scores, the ONNX export and the threshold tuning want them
        return self.fc1(x)


model = M5(n_output=len(labels)).to(device)
optimizer = optim.Adam(model.parameters(), lr=0.005, weight_decay=0.0001)
scheduler = optim.lr_scheduler.StepLR(optimizer, step_size=4, gamma=0.1)


def train(model, epoch, log_interval=5):
    model.train()
    for batch_idx, (data, target) in enumerate(train_loader):
        data, target = data.to(device), target.to(device)
        output = model(data)
        # negative log-likelihood for a tensor of size (batch x n_output)
        loss = F.nll_loss(output, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if batch_idx % log_interval == 0:
            print(f"Train Epoch: {epoch} [{batch_idx}/{len(train_loader)}]\tLoss: {loss.item():.6f}")


def test(model, epoch):
    model.eval()
    correct = 0
    with torch.no_grad():
        for data, target in test_loader:
            pred = model(data.to(device)).argmax(dim=-1)
            correct += pred.eq(target.to(device)).sum().item()
    print(f"Test Epoch: {epoch}\tAccuracy: {correct}/{len(test_loader.dataset)}")


for epoch in range(1, 6):
    train(model, epoch)
    test(model, epoch)
    scheduler.step()
