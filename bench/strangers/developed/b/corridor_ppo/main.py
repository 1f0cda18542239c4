import torch
from torch import nn
from torch.distributions import Categorical

from env import Corridors

CFG = dict(envs=16, horizon=32, iters=12, epochs=4, minibatch=128, gamma=0.98, lam=0.95, clip=0.2, vf=0.5, ent=0.01)


class ActorCritic(nn.Module):
    def __init__(self, obs, acts, h=32):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(obs, h), nn.Tanh())
        self.pi, self.v = nn.Linear(h, acts), nn.Linear(h, 1)

    def forward(self, o):
        z = self.trunk(o)
        return Categorical(logits=self.pi(z)), self.v(z).squeeze(-1)


@torch.no_grad()
def rollout(agent, env, c):
    buf = {k: [] for k in ("obs", "act", "logp", "val", "rew", "done")}
    obs = env.observe()
    for _ in range(c["horizon"]):
        dist, val = agent(obs)
        act = dist.sample()
        nxt, rew, done = env.step(act)
        for k, v in zip(buf, (obs, act, dist.log_prob(act), val, rew, done.float())):
            buf[k].append(v)
        obs = nxt
    buf = {k: torch.stack(v) for k, v in buf.items()}
    last = agent(obs)[1]
    adv, running = torch.zeros_like(buf["rew"]), torch.zeros(c["envs"])
    for t in reversed(range(c["horizon"])):
        alive = 1 - buf["done"][t]
        nxt_val = last if t == c["horizon"] - 1 else buf["val"][t + 1]
        delta = buf["rew"][t] + c["gamma"] * nxt_val * alive - buf["val"][t]
        running = delta + c["gamma"] * c["lam"] * alive * running
        adv[t] = running
    flat = {k: v.flatten(0, 1) for k, v in buf.items()}
    flat["adv"] = adv.flatten()
    flat["ret"] = flat["adv"] + flat["val"]
    return flat


def improve(agent, opt, data, c):
    for _ in range(c["epochs"]):
        for idx in torch.randperm(len(data["act"])).split(c["minibatch"]):
            b = {k: v[idx] for k, v in data.items()}
            dist, val = agent(b["obs"])
            ratio = (dist.log_prob(b["act"]) - b["logp"]).exp()
            a = (b["adv"] - b["adv"].mean()) / (b["adv"].std() + 1e-8)
            pg = -torch.min(ratio * a, ratio.clamp(1 - c["clip"], 1 + c["clip"]) * a).mean()
            loss = pg + c["vf"] * (val - b["ret"]).square().mean() - c["ent"] * dist.entropy().mean()
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
            opt.step()


if __name__ == "__main__":
    torch.manual_seed(33)
    env = Corridors(CFG["envs"], 11, torch.Generator().manual_seed(33))
    agent = ActorCritic(11, 2)
    opt = torch.optim.Adam(agent.parameters(), 3e-3, eps=1e-5)
    for it in range(CFG["iters"]):
        data = rollout(agent, env, CFG)
        improve(agent, opt, data, CFG)
        finished = data["done"].sum().item()
        print(f"iter {it:2d} reward/step {data['rew'].mean():+.4f} episodes {int(finished)}")
