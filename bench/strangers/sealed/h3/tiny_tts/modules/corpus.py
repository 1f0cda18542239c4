import torch

N_PHONES, N_MELS, PHONES_PER_UTT = 12, 8, 10


def synth_corpus(n, seed):
    g = torch.Generator().manual_seed(seed)
    table = torch.Generator().manual_seed(123)
    length = torch.randint(2, 9, (N_PHONES,), generator=table)
    colour = torch.randn(N_PHONES, N_MELS, generator=table)
    ids = torch.randint(0, N_PHONES, (n, PHONES_PER_UTT), generator=g)
    dur = (length[ids] + torch.randint(-1, 2, ids.shape, generator=g)).clamp(min=1)
    return ids, dur, colour


def mel_targets(ids, dur, colour):
    rows = [torch.repeat_interleave(colour[i], d, dim=0) for i, d in zip(ids, dur)]
    return torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)
