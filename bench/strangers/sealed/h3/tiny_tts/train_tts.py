import torch
import torch.nn.functional as F
import yaml

from modules.acoustic import TinyAcoustic
from modules.corpus import N_MELS, N_PHONES, mel_targets, synth_corpus

with open("tts.yaml") as fh:
    hp = yaml.safe_load(fh)


def losses(model, ids, dur, colour):
    mel = mel_targets(ids, dur, colour)
    out, frames = model(ids, dur)
    valid = (torch.arange(mel.size(1)) < dur.sum(1, keepdim=True)).unsqueeze(-1)
    mel_loss = ((out - mel).abs() * valid).sum() / (valid.sum() * N_MELS)
    dur_loss = F.l1_loss(frames, dur.float())
    return mel_loss, dur_loss


def main():
    torch.manual_seed(hp["seed"])
    ids, dur, colour = synth_corpus(hp["utterances"], seed=1)
    v_ids, v_dur, _ = synth_corpus(64, seed=2)
    model = TinyAcoustic(N_PHONES, hp["dim"], N_MELS)
    opt = torch.optim.Adam(model.parameters(), lr=hp["lr"])
    for epoch in range(hp["epochs"]):
        model.train()
        for b in torch.randperm(len(ids)).split(hp["batch"]):
            mel_loss, dur_loss = losses(model, ids[b], dur[b], colour)
            loss = mel_loss + hp["duration_weight"] * dur_loss
            opt.zero_grad()
            loss.backward()
            opt.step()
        model.eval()
        with torch.no_grad():
            m, d = losses(model, v_ids, v_dur, colour)
        print(f"epoch {epoch} | valid mel L1 {m.item():.3f} | frames off per phone {d.item():.3f}")


if __name__ == "__main__":
    main()
