import torch
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import BatchSampler, DataLoader, Dataset, DistributedSampler


class Utterances(Dataset):
    def __init__(self, manifest):
        with open(manifest) as f:
            self.items = [line.rstrip("\n").split("\t") for line in f]

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        feat_path, tokens = self.items[i]
        return torch.load(feat_path, weights_only=True), torch.tensor([int(t) for t in tokens.split()])


def collate(batch):
    feats, toks = zip(*batch)
    flen = torch.tensor([len(f) for f in feats])
    tlen = torch.tensor([len(t) for t in toks])
    return pad_sequence(feats, batch_first=True), flen, pad_sequence(toks, batch_first=True), tlen


def build_loader(manifest, batch_size, train, num_workers=4):
    ds = Utterances(manifest)
    sampler = DistributedSampler(ds, shuffle=train, drop_last=train)
    batches = BatchSampler(sampler, batch_size=batch_size, drop_last=train)
    return DataLoader(ds, batch_sampler=batches, collate_fn=collate, num_workers=num_workers, pin_memory=True)
