"""``pellucid evaluate --glossary`` requires the terms, counts them and names the file."""

import json
from pathlib import Path

from commands import pellucid
from evaluated_bundle import SOURCES, evaluated_bundle

from pellucid.bundle import save_bundle
from pellucid.text.glossary import Glossary


def test_the_terms_are_in_the_translations_and_in_the_signature(tmp_path: Path):
    bundle, terms, source = (tmp_path / name for name in ("bundle", "terms.tsv", "test.fr"))
    save_bundle(bundle, evaluated_bundle(), card="", details={})
    terms.write_text(
        "source\ttarget\tdomain\nchat\tmaison\tpets\npleut\tpetit|dort\tweather\n", encoding="utf-8"
    )
    source.write_text("".join(f"{line}\n" for line in SOURCES), encoding="utf-8")
    command = ("evaluate", bundle, source, source, "-b", 2, "--max-length", 9)

    plain = json.loads(pellucid(*command, "--json").out)
    found = json.loads(pellucid(*command, "--glossary", terms, "--json").out)
    assert found["terms"] == {"present": 2, "of": 2}
    fingerprint = Glossary.read(terms).fingerprint[:12]
    assert f"|terms:{fingerprint}|" in found["signatures"]["bleu"]
    assert "terms" not in plain
    assert "terms:" not in plain["signatures"]["bleu"]

    some = pellucid(*command, "--glossary", terms, "--domain", "pets").out
    assert "terms in their translations: 1 of 1" in some
    assert pellucid(*command, "--domain", "pets").code == 2
