"""Other forms of mixed precision by halves."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from bench.corpus.anatomy import clips, model_calls, optimizers, steps
from bench.corpus.operators import precision as first
from bench.corpus.operators.precision import SCALER, has_tuple_output, with_scaler
from bench.corpus.source import Edit, Source
from bench.corpus.writing import Side, Site, Sites, forms, lines


def _scaled(made: str = SCALER, *, has_clip: bool = False) -> Sites:
    """Return the steps of scripts that a scaler was brought into."""

    def sites(source: Source) -> Iterator[Site]:
        found = with_scaler(source)
        clip = [s for s, _ in clips(source) if isinstance(s, ast.Expr)]
        if found is None or bool(clips(source)) is not has_clip or (has_clip and not clip):
            return
        top, back, statement, owner = found
        top = Edit(top.start, top.end, top.text.replace(SCALER, made))
        fault = clip[0] if has_clip else None if made == SCALER else top
        yield Site((), statement, Side.INSTEAD, {"optimizer": owner}, (top, back), fault)

    return sites


forms(
    first.scaler_never_updated,
    _scaled(),
    known={
        "update-named-not-called": lines("scaler.step(<optimizer>)", "scaler.update"),
        "update-behind-a-flag": lines(
            "scaler.step(<optimizer>)",
            "if UPDATE_SCALE:",
            "    scaler.update()",
            top=("UPDATE_SCALE = False",),
            is_fault_here=True,
        ),
    },
    new={
        "in-a-function": lines(
            "scaled_step(scaler, <optimizer>)",
            top=("def scaled_step(scaler, optimizer):", "    scaler.step(optimizer)"),
        ),
        "update-in-a-function-nobody-calls": lines(
            "scaler.step(<optimizer>)", "def later():", "    scaler.update()"
        ),
    },
)
forms(
    first.optimizer_stepped_directly,
    _scaled(),
    known={
        "without-update": lines("<optimizer>.step()"),
        "update-ahead": lines("scaler.update(65536.0)", "<optimizer>.step()"),
    },
    new={
        "in-a-function": lines(
            "finish_step(<optimizer>)",
            top=("def finish_step(optimizer):", "    optimizer.step()"),
        ),
        "scale-only-read": lines("scale = scaler.get_scale()", "<optimizer>.step()"),
    },
)
forms(
    first.scaled_gradients_clipped,
    _scaled(has_clip=True),
    known={
        "update-in-a-loop": lines(
            "for act in (lambda: scaler.step(<optimizer>), scaler.update):", "    act()"
        ),
        "unscaled-too-late": lines(
            "scaler.unscale_(<optimizer>)", "scaler.step(<optimizer>)", "scaler.update()"
        ),
    },
    new={
        "in-a-function": lines(
            "scaled_step(scaler, <optimizer>)",
            top=(
                "def scaled_step(scaler, optimizer):",
                "    scaler.step(optimizer)",
                "    scaler.update()",
            ),
        )
    },
)
OLD_STEP = ("scaler.step(<optimizer>)", "scaler.update()")
forms(
    first.scaler_of_old,
    _scaled("scaler = torch.cuda.amp.GradScaler(enabled=True)"),
    known={"with-a-setting": lines(*OLD_STEP)},
)
forms(
    first.scaler_of_old,
    _scaled("scaler = torch.cpu.amp.GradScaler()"),
    known={"for-the-processor": lines(*OLD_STEP)},
)
forms(
    first.scaler_of_old,
    _scaled("scaler = __import__('torch.cuda.amp', fromlist=['GradScaler']).GradScaler()"),
    new={"imported-by-name": lines(*OLD_STEP)},
)


def _half_models(source: Source) -> Iterator[Site]:
    """Yield the lines ahead of optimizers of models with one input and one output."""
    single = [s for s in steps(source) if len(model_calls(source, s)) == 1]
    for optimizer in optimizers(source):
        if not optimizer.model or optimizer.model == "self":
            continue
        if single and not has_tuple_output(source):
            yield Site(anchor=optimizer.statement, words={"model": optimizer.model})


HOOKS = (
    "<model>.register_forward_pre_hook(",
    "    lambda m, a: tuple(x.bfloat16() if x.is_floating_point() else x for x in a)",
    ")",
    "<model>.register_forward_hook(lambda m, a, y: y.float())",
)
forms(
    first.weights_in_bfloat16,
    _half_models,
    known={
        "type-given": lines("<model>.to(torch.bfloat16)", *HOOKS),
        "parameter-by-parameter": lines(
            "for p in [*<model>.parameters(), *<model>.buffers()]:",
            "    p.data = p.data.to(torch.bfloat16) if p.is_floating_point() else p.data",
            *HOOKS,
        ),
    },
    new={
        "in-a-function": lines(
            "lighten(<model>)",
            *HOOKS,
            top=("def lighten(module):", "    return module.to(dtype=torch.bfloat16)"),
        ),
        "applied": lines("<model>.apply(lambda module: module.bfloat16())", *HOOKS),
    },
)
