# Monte-Carlo dropout: how sure is the network about river discharge?
# Dropout is left on when predicting (Gal & Ghahramani 2016); batch norm is not.

import torch
from torch import nn

torch.manual_seed(14)


class DischargeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp = nn.Linear(1, 64)
        self.bn = nn.BatchNorm1d(64)
        self.hid = nn.Linear(64, 64)
        self.drop = nn.Dropout(0.15)
        self.out = nn.Linear(64, 1)

    def forward(self, x):
        x = self.drop(torch.relu(self.bn(self.inp(x))))
        x = self.drop(torch.relu(self.hid(x)))
        return self.out(x)


def discharge(rain):
    return torch.sin(2 * rain) + 0.3 * rain


# training data has a gap between 0.5 and 1.5
rain = torch.cat([torch.rand(150, 1) * 2.5 - 2, torch.rand(150, 1) * 1.0 + 1.5])
flow = discharge(rain) + 0.1 * torch.randn_like(rain)
perm = torch.randperm(len(rain))
train_idx, test_idx = perm[:240], perm[240:]

net = DischargeNet()
optimizer = torch.optim.Adam(net.parameters(), lr=5e-3, weight_decay=1e-5)
mse = nn.MSELoss()

for epoch in range(60):
    net.train()
    shuffled = train_idx[torch.randperm(len(train_idx))]
    for batch in shuffled.split(40):
        optimizer.zero_grad()
        loss = mse(net(rain[batch]), flow[batch])
        loss.backward()
        optimizer.step()
    if epoch % 15 == 14:
        print("epoch", epoch + 1, "loss", round(loss.item(), 4))


def enable_dropout(module):
    if isinstance(module, nn.Dropout):
        module.train()


def mc_predict(model, x, samples=100):
    model.eval()
    model.apply(enable_dropout)
    with torch.no_grad():
        draws = torch.stack([model(x) for _ in range(samples)])
    return draws.mean(0), draws.std(0)


mean, std = mc_predict(net, rain[test_idx])
print("test RMSE", torch.sqrt(mse(mean, flow[test_idx])).item())

inside = torch.linspace(-1.8, 0.3, 50).unsqueeze(1)
gap = torch.linspace(0.7, 1.3, 50).unsqueeze(1)
far = torch.linspace(3.5, 4.5, 50).unsqueeze(1)
for name, region in [("inside", inside), ("gap", gap), ("far away", far)]:
    print(f"mean predictive std {name}: {mc_predict(net, region)[1].mean().item():.3f}")
