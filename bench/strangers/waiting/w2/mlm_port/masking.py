import torch

PAD, CLS, SEP, MASK = 0, 1, 2, 3
N_SPECIAL = 4


def mask_tokens(inputs, vocab_size, mlm_probability=0.15, generator=None):
    """80% MASK, 10% random, 10% original (run_lm_finetuning.py)."""
    labels = inputs.clone()
    inputs = inputs.clone()
    prob = torch.full(labels.shape, mlm_probability)
    prob.masked_fill_(labels < N_SPECIAL, 0.0)
    masked = torch.bernoulli(prob, generator=generator).bool()
    labels[~masked] = -1

    replaced = torch.bernoulli(torch.full(labels.shape, 0.8), generator=generator).bool() & masked
    inputs[replaced] = MASK

    rand = torch.bernoulli(torch.full(labels.shape, 0.5), generator=generator).bool() & masked & ~replaced
    words = torch.randint(N_SPECIAL, vocab_size, labels.shape, generator=generator)
    inputs[rand] = words[rand]
    return inputs, labels
