"""Small files to train on and to translate, good and bad."""

from pathlib import Path

SENTENCES = [
    ("le chat dort", "the cat sleeps"),
    ("un chien mange", "a dog eats"),
    ("je lis le livre", "i read the book"),
    ("tu vois la lune ce soir", "you see the moon tonight"),
    ("nous parlons", "we speak"),
    ("elle aime le pain frais", "she loves the fresh bread"),
    ("vous dansez", "you dance"),
    ("ils partent demain matin", "they leave tomorrow morning"),
]


def write_pair(folder: Path, name: str = "train") -> tuple[Path, Path]:
    source, target = folder / f"{name}.fr", folder / f"{name}.en"
    source.write_text("".join(f"{line}\n" for line, _ in SENTENCES), encoding="utf-8")
    target.write_text("".join(f"{line}\n" for _, line in SENTENCES), encoding="utf-8")
    return source, target


def data_options(source: Path, target: Path) -> list[str]:
    """``--set`` options that train on these files, as small as can be."""
    settings = {
        "data.source": source,
        "data.target": target,
        "data.valid_source": source,
        "data.valid_target": target,
        "tokenizer.kind": "word",
        "tokenizer.vocabulary_size": 100,
        "model.d_model": 8,
        "model.d_ff": 8,
        "model.heads": 2,
        "model.encoder_layers": 1,
        "model.decoder_layers": 1,
        "training.max_steps": 1,
        "training.threads": 1,
        "decoding.max_length": 5,
    }
    return [part for key, value in settings.items() for part in ("--set", f"{key}={value}")]
