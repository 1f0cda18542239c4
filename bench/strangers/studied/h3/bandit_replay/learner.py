import torch
import torch.nn as nn
import torch.nn.functional as F


class QNet(nn.Module):
    def __init__(self, n_obs, n_act, width=64):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(n_obs, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, n_act))

    def forward(self, x):
        return self.layers(x)


class QLearner:
    def __init__(self, n_obs, n_act, device, gamma=0.95, lr=1e-3):
        self.device, self.gamma, self.n_act = device, gamma, n_act
        self.net = QNet(n_obs, n_act).to(device)
        self.frozen = QNet(n_obs, n_act).to(device)
        self.sync()
        self.opt = torch.optim.Adam(self.net.parameters(), lr=lr)

    def sync(self):
        self.frozen.load_state_dict(self.net.state_dict())

    def choose(self, obs, eps, rng):
        q = self.net(torch.from_numpy(obs).to(self.device))
        action = int(rng.integers(self.n_act)) if rng.random() < eps else int(q.argmax())
        return action, q[action]

    def learn(self, moments):
        def stack(name, dtype=torch.float32):
            return torch.as_tensor([getattr(m, name) for m in moments], dtype=dtype, device=self.device)

        obs = torch.stack([torch.from_numpy(m.obs) for m in moments]).to(self.device)
        nxt = torch.stack([torch.from_numpy(m.next_obs) for m in moments]).to(self.device)
        with torch.no_grad():
            goal = stack("reward") + self.gamma * (1 - stack("done")) * self.frozen(nxt).max(1).values
        q = self.net(obs).gather(1, stack("action", torch.long)[:, None]).squeeze(1)
        loss = F.smooth_l1_loss(q, goal)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        return loss.item()
