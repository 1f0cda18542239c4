"""Loss scaling helper, same call signature as the one in timm."""
import torch


class LossScaler:
    state_dict_key = "amp_scaler"

    def __init__(self, device="cuda", enabled=True):
        self._scaler = torch.amp.GradScaler(device, enabled=enabled)

    def __call__(self, loss, optimizer, clip_grad=None, parameters=None, create_graph=False, need_update=True):
        self._scaler.scale(loss).backward(create_graph=create_graph)
        norm = None
        if need_update:
            if clip_grad is not None:
                assert parameters is not None
                self._scaler.unscale_(optimizer)
                norm = torch.nn.utils.clip_grad_norm_(parameters, clip_grad)
            self._scaler.step(optimizer)
        return norm

    def state_dict(self):
        return self._scaler.state_dict()

    def load_state_dict(self, state):
        self._scaler.load_state_dict(state)
