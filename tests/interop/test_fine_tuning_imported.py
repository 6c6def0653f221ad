"""From a Marian folder to a fine-tuned model, by the commands that the documentation names."""

import json
from pathlib import Path

from commands import pellucid
from marian_folders import marian_folder, open_marian
from tiny_runs import set_options

from pellucid.backends.huggingface.export_folder import export_huggingface
from pellucid.bundle import load_bundle

PAIRS = [
    ("je suis étudiant", "a black cat"),
    ("le petit chat noir ne dort pas", "we speak"),
    ("où est ma maison", "it rains on the table"),
    ("il pleut dans le train", "where is my house"),
]
SETTINGS = [
    "training.max_steps=160",
    "training.max_epochs=1000",
    "training.batch_tokens=128",
    "training.learning_rate=0.01",
    "training.warmup_steps=10",
    "training.validate_every=80",
    "training.threads=1",
    "training.label_smoothing=0.0",
    "training.average_decay=0.0",
]


def test_an_imported_model_is_fine_tuned_on_new_text_and_goes_back(tmp_path: Path):
    marian_folder(tmp_path / "opus-mt-fr-en")
    for side, name in enumerate(("new.fr", "new.en")):
        lines = "".join(f"{pair[side]}\n" for pair in PAIRS * 8)
        (tmp_path / name).write_text(lines, encoding="utf-8")
        few = "".join(f"{pair[side]}\n" for pair in PAIRS)
        (tmp_path / f"valid.{name}").write_text(few, encoding="utf-8")
    files = ["data.source=new.fr", "data.target=new.en"]
    files += ["data.valid_source=valid.new.fr", "data.valid_target=valid.new.en"]
    imported = pellucid("import", "huggingface", "opus-mt-fr-en", "imported", folder=tmp_path)
    assert imported.code == 0, imported.err
    options = set_options([*files, *SETTINGS])
    arguments = ("train", "finetune", "--init", "imported", *options, "--out", "tuned")
    trained = pellucid(*arguments, folder=tmp_path)
    assert trained.code == 0, trained.err

    journal = (tmp_path / "tuned" / "journal.jsonl").read_text().splitlines()
    losses = [event["loss"] for event in map(json.loads, journal) if event["event"] == "validation"]
    assert losses[-1] < 0.5 * losses[0]
    lines = "".join(f"{source}\n" for source, _ in PAIRS).encode()
    said = pellucid("translate", "tuned", folder=tmp_path, stdin=lines)
    assert said.out.splitlines() == [target for _, target in PAIRS]

    tuned = load_bundle(tmp_path / "tuned")
    assert tuned.settings["tokenizer"]["kind"] == "marian"
    assert tuned.settings["decoding"]["max_source_tokens"] == 63  # of the parent
    export_huggingface(tuned, tmp_path / "again")
    model, tokenizer = open_marian(tmp_path / "again")
    batch = tokenizer([source for source, _ in PAIRS], return_tensors="pt", padding=True)
    found = model.generate(**batch, num_beams=1)
    assert tokenizer.batch_decode(found, skip_special_tokens=True) == [t for _, t in PAIRS]
