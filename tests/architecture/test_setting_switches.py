"""Every setting of the Transformer is varied where the module is held to the page of equations."""

from switch_pairs import SIZES, SWITCHES

from pellucid.model.config import TransformerConfig

_ELSEWHERE = {
    "kind": "it names the Transformer",
    "pretrained_vectors": "it names a file that the first embeddings come from",
}
"""Settings that no config of these laws varies, and why."""


def test_every_setting_is_a_switch():
    switched = {name for values in SWITCHES.values() for each in values for name in each}
    missing = TransformerConfig.model_fields.keys() - switched - SIZES.keys() - _ELSEWHERE.keys()
    assert not missing, (
        f"add {', '.join(sorted(missing))} to SWITCHES of tests/switch_pairs.py, with two values:"
        " only then is the module held to the page of equations under it"
    )


def test_a_switch_has_another_setting_than_the_default():
    """A law under the default alone would not notice a setting that the page ignores."""
    fields = TransformerConfig.model_fields
    for name in fields.keys() - SIZES.keys() - _ELSEWHERE.keys():
        values = [each[name] for values in SWITCHES.values() for each in values if name in each]
        assert any(value != fields[name].default for value in values), (
            f"SWITCHES of tests/switch_pairs.py needs a value of {name} that is not its default"
        )
