import torch
import torch.distributed as dist


class Hook:
    def before_epoch(self, engine):
        pass

    def after_epoch(self, engine, stats):
        pass


class ReshuffleHook(Hook):
    """Gives the sampler the current epoch so that the permutation changes."""

    def before_epoch(self, engine):
        sampler = engine.loader.batch_sampler
        if hasattr(sampler, "set_epoch"):
            sampler.set_epoch(engine.epoch)


class PrintHook(Hook):
    def after_epoch(self, engine, stats):
        if dist.get_rank() == 0:
            first = engine.first_ids.tolist()[:6]
            print(f"[{engine.epoch}] " + " ".join(f"{k}={v:.4f}" for k, v in stats.items()) + f" head={first}")


class Engine:
    def __init__(self, model, loader, opt, criterion, hooks):
        self.model, self.loader, self.opt, self.criterion = model, loader, opt, criterion
        self.hooks = list(hooks)
        self.epoch = 0

    def run(self, epochs):
        for self.epoch in range(epochs):
            for h in self.hooks:
                h.before_epoch(self)
            stats = self._one_epoch()
            for h in self.hooks:
                h.after_epoch(self, stats)

    def _one_epoch(self):
        self.model.train()
        acc = torch.zeros(3)
        for i, (ids, images, species) in enumerate(self.loader):
            if i == 0:
                self.first_ids = ids
            out = self.model(images)
            loss = self.criterion(out, species)
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            acc += torch.tensor([loss.item() * len(ids), (out.argmax(1) == species).sum().item(), len(ids)])
        dist.all_reduce(acc)
        return {"loss": (acc[0] / acc[2]).item(), "acc": (acc[1] / acc[2]).item()}
