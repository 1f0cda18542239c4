import torch


@torch.no_grad()
def sample(policy, prompts, cfg):
    gen = torch.Generator().manual_seed(cfg.seed)
    h = policy.begin(prompts)
    prev = torch.full((len(prompts),), 10)
    tokens = []
    for _ in range(2):
        logp, h = policy.step(prev, h)
        prev = torch.multinomial((logp / cfg.temperature).softmax(-1), 1, generator=gen).squeeze(1)
        tokens.append(prev)
    return torch.stack(tokens, 1)


def rollout_group(policy, prompts, cfg):
    """(group, batch, 2) completions for every prompt."""
    return torch.stack([sample(policy, prompts, cfg) for _ in range(cfg.group_size)])


def reward(prompts, tokens):
    s = prompts.sum(-1)
    gold = torch.stack([s // 10, s % 10], -1)
    return (tokens == gold).float().mean(-1)
