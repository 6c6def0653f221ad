"""The data of a film: for each update the state of the explorer, within a budget of bytes."""

from typing import Any

from pellucid.inspection.film import Film
from pellucid.inspection.report.content import frame_content
from pellucid.inspection.report.steps import label_words, labeler

FILM_BUDGET = 4_800_000
"""Bytes of all frames together, as much as everything else in a report."""


def film_content(
    film: Film, *, budget: int = FILM_BUDGET, drawn_only: bool = False
) -> dict[str, Any]:
    """The frames of ``film``, ready for JSON; large matrices are cut as in a report.

    The matrices are those that the models computed; learned ones are left out, and with
    ``drawn_only`` all that the picture of the whole model does not paint.
    """
    each_budget = budget // len(film.frames)
    label = labeler([token for frame in film.frames for token in frame.own_tokens])

    frames = []
    for frame in film.frames:
        labels = label_words(frame.own_tokens, label)
        own = zip(labels, frame.own_confidences, strict=True)
        frames.append(
            {
                "step": frame.step,
                "kind": frame.kind,
                "own": frame.own,
                "own_words": [[word, round(confidence, 4)] for word, confidence in own],
                "loss": frame.loss,
                "bleu": frame.bleu,
                **frame_content(frame.capture, budget=each_budget, drawn_only=drawn_only),
            }
        )

    return {"source": film.source, "target": film.target, "frames": frames}
