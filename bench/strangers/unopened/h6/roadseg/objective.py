import torch.nn.functional as F


class SegObjective:
    def __init__(self, aux_weight, aux_from_epoch):
        self.aux_weight, self.aux_from_epoch = aux_weight, aux_from_epoch

    def __call__(self, out, mask, epoch):
        loss = F.cross_entropy(out["main"], mask)
        if epoch >= self.aux_from_epoch:
            loss = loss + self.aux_weight * F.cross_entropy(out["aux"], mask)
        return loss
