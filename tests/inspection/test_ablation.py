"""Models without one of their parts: functional, exact, and the model itself untouched."""

import dataclasses
import math
from typing import Any

import pytest
import torch
from tiny_models import EVERY_KIND, RECURRENT, sources, targets, tiny_bundle, tiny_model

from pellucid.core.errors import ConfigError, DataError
from pellucid.decoding.config import DecodingConfig
from pellucid.decoding.translator import Translator
from pellucid.evaluation.metrics import bleu
from pellucid.inspection.ablation import ablate, ablation_parts, model_without
from pellucid.model.trace import Trace
from pellucid.text.glossary import Glossary, Term
from pellucid.text.seen_words import SeenWords

EXACT = {"rtol": 1e-12, "atol": 1e-12}


@pytest.mark.parametrize(
    "part",
    [
        "encoder.layers.1.self_attention.heads.0",
        "decoder.layers.0.self_attention.heads.1",
        "decoder.layers.1.cross_attention.heads.1",
    ],
)
def test_a_head_that_is_off_says_nothing(part: str):
    """The model without it = the model in whose pass its output is set to zero."""
    model = tiny_model("wide values")
    stem, _, head = part.partition(".heads.")

    def silence(value: torch.Tensor) -> torch.Tensor:
        value = value.clone()
        value[:, int(head)] = 0.0
        return value

    inputs = sources(5, 3), targets(2, 4)
    expected = model(*inputs, Trace(edits={f"{stem}.heads": silence}))
    torch.testing.assert_close(model_without(model, part)(*inputs), expected, **EXACT)
    assert not torch.allclose(expected, model(*inputs))


@pytest.mark.parametrize("variant", ["ssru", "ssru, pre-norm"])
def test_an_ssru_that_is_off_adds_nothing(variant: str):
    """The model without it = the model in whose pass its output is set to zero."""
    model, inputs = tiny_model(variant), (sources(5, 3), targets(2, 4))
    expected = model(*inputs, Trace(edits={"decoder.layers.1.ssru.output": torch.zeros_like}))
    torch.testing.assert_close(
        model_without(model, "decoder.layers.1.ssru")(*inputs), expected, **EXACT
    )
    assert not torch.allclose(expected, model(*inputs))


@pytest.mark.parametrize("part", ["encoder.layers.1", "decoder.layers.0"])
@pytest.mark.parametrize("variant", ["paper", "pre-norm"])
def test_a_layer_that_is_left_out_lets_its_rows_pass(part: str, variant: str):
    """The model without it = the model in whose pass what leaves it is what entered it."""
    model, inputs = tiny_model(variant), (sources(5, 3), targets(2, 4))
    side, _, index = part.partition(".layers.")
    before = f"{side}.layers.0.output" if index == "1" else f"{side}.input"
    trace = Trace(before)
    edits = {f"{part}.output": lambda _: trace.values[before]}
    watching = Trace(before, edits=edits)
    watching.values = trace.values
    expected = model(*inputs, watching)
    torch.testing.assert_close(model_without(model, part)(*inputs), expected, **EXACT)
    assert not torch.allclose(expected, model(*inputs))


@pytest.mark.parametrize("variant", EVERY_KIND)
def test_a_model_is_untouched_and_shares_all_but_what_is_off(variant: str):
    model = tiny_model(variant)
    before = {name: parameter.clone() for name, parameter in model.named_parameters()}
    parts = ablation_parts(model.config)
    by_kind = {part.rpartition(".")[0].rpartition(".")[2]: part for part in parts}
    for part in parts if variant == "paper" else by_kind.values():  # else a head, a unit, a layer
        changed = model_without(model, part)
        parameters = dict(model.named_parameters())
        own = [p for p in changed.parameters() if all(p is not q for q in parameters.values())]
        assert len(own) == (0 if part.split(".")[-2] == "layers" else 1)
    for name, parameter in model.named_parameters():
        assert torch.equal(parameter, before[name])


def test_a_model_without_a_part_steps_as_it_runs():
    """Cached = full holds for it too, so that it can be searched at full speed."""
    model = model_without(tiny_model(), "decoder.layers.1.cross_attention.heads.0")
    source, target = sources(5, 3), targets(2, 4)
    full, state = model(source, target), model.start(model.encode(source))
    for position in range(4):
        logits, state = model.step(target[:, position : position + 1], state)
        torch.testing.assert_close(logits[:, 0], full[:, position], **EXACT)


@pytest.mark.parametrize(
    "variant", [v for v in RECURRENT if "lstm" not in v and not v.startswith(("gru", "reversed"))]
)
def test_a_recurrent_model_without_attention_no_longer_sees_where_it_looks(variant: str):
    model = tiny_model(variant)
    changed = model_without(model, "decoder.cross_attention")
    trace = Trace("decoder.cross_attention.output", "decoder.layers.1.hidden")
    changed(sources(5), targets(1, 4), trace)
    hidden = trace.values["decoder.layers.1.hidden"]
    weight = model.decoder.cross_attention.w_output
    torch.testing.assert_close(
        trace.values["decoder.cross_attention.output"], torch.tanh(hidden @ weight[8:]), **EXACT
    )


def test_a_study_scores_the_whole_and_each_part():
    bundle = tiny_bundle()
    lines, references = ["a b c", "d e f g"], ["c b a d", "g f"]
    seen = []
    study = ablate(bundle, lines, references, done=lambda done, count: seen.append((done, count)))
    translator = Translator(bundle, DecodingConfig())
    hypotheses = [each.text for each in translator.translate(lines)]
    assert study.bleu == bleu(hypotheses, references).score
    log_probs = [p for each in translator.score(lines, references) for p in each.token_log_probs]
    assert study.loss == pytest.approx(-math.fsum(log_probs) / 8, rel=1e-12)
    assert [part.part for part in study.parts] == ablation_parts(bundle.model.config)
    assert len(study.parts) == 2 * 3 * 2 + 4
    assert len({part.loss for part in study.parts}) == len(study.parts)
    assert seen == [(number, 16) for number in range(17)]
    assert study.sentences == 2
    assert study.signature.startswith("nrefs:1|case:mixed|eff:no|tok:13a")


def test_a_study_reads_lines_as_every_translator_of_the_bundle(monkeypatch: pytest.MonkeyPatch):
    """Capitals by the words of its training text, so that its BLEU is that of ``evaluate``."""
    bundle = dataclasses.replace(tiny_bundle(), seen_words=SeenWords(frozenset("abc")))
    asked = []
    translate = Translator.translate

    def watched(self: Translator, *arguments: Any, **options: Any) -> Any:
        own = self.literals_in, self.usual_warnings, self.glossary
        languages = self.source_language, self.target_language
        asked.append((self.bundle.seen_words, *languages, *own))
        return translate(self, *arguments, **options)

    monkeypatch.setattr(Translator, "translate", watched)
    usual, literals_in = frozenset({"digits"}), lambda _: []
    glossary = Glossary([Term(("a",), ("b",))])
    translator = Translator(
        bundle,
        DecodingConfig(),
        source_language="en",
        target_language="tr",
        glossary=glossary,
        usual_warnings=usual,
        literals_in=literals_in,
    )
    study = ablate(translator, ["a b"], ["b a"], parts=["encoder.layers.0"])
    assert asked == 2 * [(bundle.seen_words, "en", "tr", literals_in, usual, glossary)]
    assert f"|terms:{glossary.fingerprint[:12]}|" in study.signature


def test_a_script_without_spaces_is_scored_by_its_characters():
    """By words between spaces every line is one word, and nothing that a part gives is seen."""
    study = ablate(tiny_bundle(), ["a b c"], ["我看见一只黑猫。"], parts=[])
    assert "|tok:zh|" in study.signature


def test_one_part_is_as_in_a_model_that_never_had_it():
    bundle = tiny_bundle()
    lines, references = ["a b c"], ["c b a d"]
    [part] = ablate(bundle, lines, references, parts=["decoder.layers.1"]).parts
    del bundle.model.decoder.layers[1]
    shorter = ablate(bundle, lines, references, parts=[])
    assert (part.bleu, part.loss) == (shorter.bleu, shorter.loss)


def test_a_plain_rnn_has_nothing_to_switch_off():
    study = ablate(tiny_bundle("lstm"), ["a b"], ["c"])
    assert study.parts == ()


def test_a_part_that_is_not_there_and_lines_that_do_not_pair_are_told():
    with pytest.raises(ConfigError) as caught:
        model_without(tiny_model(), "encoder.layers.7")
    assert str(caught.value) == (
        "each part must be a head or layer of this model, got encoder.layers.7"
    )
    with pytest.raises(DataError, match="as many sources as references"):
        ablate(tiny_bundle(), ["a", "b"], ["c"])


def test_the_only_layer_of_a_decoder_can_be_left_out():
    bundle = tiny_bundle(encoder_layers=1, decoder_layers=1)
    settings = DecodingConfig(beam_size=2, max_length=4)
    study = ablate(Translator(bundle, settings), ["a b"], ["c d"])
    assert "decoder.layers.0" in [each.part for each in study.parts]
