from lightning.pytorch import Callback


class GradualUnfreeze(Callback):
    """Only the classifier trains at first; `schedule` maps an epoch to the block that joins."""

    def __init__(self, schedule):
        self.schedule = schedule

    def on_fit_start(self, trainer, pl_module):
        for block in pl_module.blocks:
            for p in block.parameters():
                p.requires_grad = False

    def on_train_epoch_start(self, trainer, pl_module):
        index = self.schedule.get(trainer.current_epoch)
        if index is not None:
            block = pl_module.blocks[index]
            block.requires_grad = True
            block.train()
            print(f"  epoch {trainer.current_epoch}: block {index} is trained from now on")


class Progress(Callback):
    def on_validation_epoch_end(self, trainer, pl_module):
        if not trainer.sanity_checking:
            m = trainer.callback_metrics
            print(f"epoch {trainer.current_epoch}: val_loss {m['val_loss']:.4f} val_acc {m['val_acc']:.3f}")
