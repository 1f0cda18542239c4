from dataclasses import dataclass

import torch

from policy import SumPolicy
from rollout import reward, rollout_group


@dataclass
class GRPOConfig:
    seed: int = 0
    steps: int = 200
    batch: int = 32
    group_size: int = 8
    temperature: float = 1.0
    clip: float = 0.2
    inner_epochs: int = 2
    lr: float = 3e-3


def group_advantage(r):
    return (r - r.mean(0, keepdim=True)) / (r.std(0, keepdim=True) + 1e-4)


def update(policy, opt, prompts, groups, adv, cfg):
    flat_prompts = prompts.repeat(cfg.group_size, 1)
    tokens, a = groups.flatten(0, 1), adv.flatten()
    with torch.no_grad():
        old = policy.log_prob(flat_prompts, tokens)
    for _ in range(cfg.inner_epochs):
        ratio = (policy.log_prob(flat_prompts, tokens) - old).exp()
        loss = -torch.min(ratio * a, ratio.clamp(1 - cfg.clip, 1 + cfg.clip) * a).mean()
        opt.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
        opt.step()
    return loss.item()


def main(cfg=GRPOConfig()):
    torch.manual_seed(cfg.seed)
    policy = SumPolicy()
    opt = torch.optim.Adam(policy.parameters(), lr=cfg.lr)
    everything = torch.cartesian_prod(torch.arange(5), torch.arange(5))
    for step in range(1, cfg.steps + 1):
        prompts = everything[torch.randint(len(everything), (cfg.batch,))]
        groups = rollout_group(policy, prompts, cfg)
        r = reward(prompts, groups)
        loss = update(policy, opt, prompts, groups, group_advantage(r), cfg)
        if step % 40 == 0:
            print(f"step {step} reward {r.mean():.3f} in-group std {r.std(0).mean():.3f} loss {loss:+.4f}")
    final = rollout_group(policy, everything, cfg)
    print(f"solved {(reward(everything, final) == 1).float().mean():.2f}")


if __name__ == "__main__":
    main()
