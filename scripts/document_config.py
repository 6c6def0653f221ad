"""Write docs/configuration.md from the configs themselves: types, defaults, docstrings, refusals.

python scripts/document_config.py           write the page
python scripts/document_config.py --check   fail if the page is not what would be written
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from document_equations import link_numbers
from pydantic.fields import FieldInfo

from pellucid.core.config import Config, apply_overrides, configs_in, fields_of, read_toml
from pellucid.core.config_text import setting_type
from pellucid.core.errors import ConfigError
from pellucid.decoding.config import SamplingConfig
from pellucid.training.config import RunConfig

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "configuration.md"
PRESETS = ROOT / "pellucid" / "presets"

INTRODUCTION = """\
# Configuration

<!-- Written by scripts/document_config.py from the code: change that, then run the script. -->

```
pellucid train train.en train.de --set model.dropout=0.2 --out runs/en-de
pellucid train multi30k --set data.source=train.en --set data.target=train.de --out runs/en-de
pellucid train my.toml --set training.learning_rate=3e-3
```

A config is a TOML file, or the name of a preset. It has one section for each part of a run:

```toml
[data]
source = "train.en"
target = "train.de"

[model]
d_model = 256
d_ff = 1024
heads = 4

[training]
max_minutes = 30
```

`--set section.key=value` changes one setting and may be given many times. `pellucid config PRESET`
prints a preset whole, with the meaning of every setting, as a file to begin with.

- The value is read as TOML: `3e-4`, `true`, `[1, 2]`. What is not TOML is text, so
  `--set data.source=train.en` needs no quotes. A list of files does:
  `--set 'data.source=["a.en", "b.en"]'`.
- A table inside a section is reached by one more dot: `--set decoding.sampling.top_k=10`. Of a
  section given as a table, `--set 'model={dropout=0.2, norm="pre"}'`, the other settings stay.
- File names count from the current folder, not from the config's.
- A setting that a preset has set can be changed, but not unset: TOML has no word for "none". A
  limit such as `training.max_minutes` can be raised until it no longer matters.
- Unknown names, wrong types and values out of range are refused, all of them together, each with
  its path and, for an unknown name, the nearest one that exists. Settings that cannot stand
  together are told once each of them alone is right. Exit code 78.

"Not set" in a table below means that the setting has no value unless you give it one. "The
paper" is Vaswani et al. (2017), "Attention Is All You Need"; a § is a section of it. Agarwal, the
Single Page, Bayesuvius, the Transformers report and Lee are the texts of [sources.md](sources.md);
`EQ` and `ER` numbers lead to equations of these five texts and to errors in them.
"""

MODEL = """\
The sizes and switches of a model. `kind` says which system is built; a setting that only other
kinds have is refused. The defaults are those of Vaswani et al. (2017), §3 and Table 3, row
"base"."""

LIMITED: dict[str, Any] = {"training": {"max_steps": 1000}}
UNLIMITED: dict[str, Any] = {"training": {}}
REFUSED: list[tuple[dict[str, Any], list[str]]] = [
    (UNLIMITED, ["training.batch_tokens=4096"]),
    (LIMITED, ["training.schedule=paper", "training.learning_rate=1e-3"]),
    (LIMITED, ["training.average_last=5", "training.average_decay=0.99"]),
    (LIMITED, ["model.d_model=128", "model.heads=3"]),
    (LIMITED, ["model.kind=rnn", "model.heads=8", "model.attention=dot"]),
    (LIMITED, ["model.kind=rnn-attention", "model.d_model=7", "model.decoder_layers=2"]),
    (LIMITED, ["tokenizer.shared=false"]),
    (LIMITED, ["model.positions=learned", "model.max_positions=100"]),
    (LIMITED, ["tokenizer.vocabulary_size=200"]),
    (LIMITED, ["tokenizer.kind=word", "tokenizer.sampling=0.1"]),
    (LIMITED, ["tokenizer.lowercase=true"]),
    (LIMITED, ["tokenizer.keep_spaces=false"]),
    (LIMITED, ["data.source=train.en"]),
    (LIMITED, ["data.source=train.tsv", "data.target=train.de"]),
    (LIMITED, ["decoding.beam_size=2", "decoding.n_best=5"]),
    (LIMITED, ["decoding.min_length=9", "decoding.max_length=5"]),
    (LIMITED, ["decoding.beam_size=0", "decoding.patience=0"]),
    (LIMITED, ["decoding.sampling.top_p=0", "decoding.sampling.temperature=0"]),
]
"""Settings that cannot stand together; the page shows the message of each."""


def document() -> str:
    """The whole page."""
    parts = [INTRODUCTION]
    for name, field in RunConfig.model_fields.items():
        configs = configs_in(field.annotation)
        parts.append(_section(name, configs[0]) if len(configs) == 1 else _union(name, configs))
    parts += [_section("decoding.sampling", SamplingConfig), _refusals(), _presets()]
    return "\n".join(parts)


def _section(name: str, config: type[Config]) -> str:
    lines = [f"## [{name}]", "", _clean(config.__doc__ or ""), ""]
    lines += ["| setting | type | default | meaning |", "|---|---|---|---|"]
    for key, field in config.model_fields.items():
        cells = (f"`{key}`", setting_type(field), _default(field), _clean(field.description or ""))
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _union(name: str, configs: Sequence[type[Config]]) -> str:
    """A section of several kinds: each setting once, with the kinds that have it."""
    lines = [f"## [{name}]", "", MODEL, ""]
    lines += ["| setting | kinds | type | default | meaning |", "|---|---|---|---|---|"]
    for key, field in fields_of(configs).items():
        owners = [each.model_fields["kind"].default for each in configs if key in each.model_fields]
        cells = (
            f"`{key}`",
            "all" if len(owners) == len(configs) else ", ".join(owners),
            setting_type(field),
            _default(field),
            _clean(field.description or ""),
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _clean(text: str) -> str:
    """A docstring as one cell of a table."""
    return link_numbers(" ".join(text.split()).replace("``", "`").replace("|", "\\|"))


def _default(field: FieldInfo) -> str:
    return "not set" if field.default in (None, ()) else f"`{_value(field.default)}`"


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple | list):
        return f"[{', '.join(map(_value, value))}]"
    return f'"{value}"' if isinstance(value, str) else str(value)


def _refusals() -> str:
    lines = ["## What is refused", "", "| settings | message |", "|---|---|"]
    for base, settings in REFUSED:
        shown = " ".join(f"`{setting}`" for setting in settings)
        lines.append(f"| {shown} | {_clean(refusal(base, settings))} |")
    lines += ["", "The first two rows are configs that set no other limit."]
    return "\n".join(lines) + "\n"


def refusal(base: dict[str, Any], settings: list[str]) -> str:
    """The message about these settings."""
    try:
        RunConfig.parse(apply_overrides(base, settings))
    except ConfigError as error:
        return str(error).removeprefix("config: ")
    raise AssertionError(f"{settings} are not refused")


def _presets() -> str:
    tables = {path.stem: read_toml(path) for path in sorted(PRESETS.glob("*.toml"))}
    lines = ["## Presets", "", "A preset sets what is listed here; the rest has its default.", ""]
    for name in tables:
        comment = (PRESETS / f"{name}.toml").read_text(encoding="utf-8").split("\n")[0]
        lines.append(f"- `{name}`: {comment.removeprefix('# ')}")
    lines += ["", f"| setting | {' | '.join(tables)} |", f"|---|{'---|' * len(tables)}"]
    for section, config in RunConfig.model_fields.items():
        for key in fields_of(configs_in(config.annotation)):
            values = [table.get(section, {}).get(key) for table in tables.values()]
            if any(value is not None for value in values):
                cells = ("" if value is None else f"`{_value(value)}`" for value in values)
                lines.append(f"| `{section}.{key}` | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    """Write the page, or with ``--check`` say whether it is up to date."""
    text = document()
    if "--check" in sys.argv[1:]:
        fresh = PAGE.is_file() and PAGE.read_text(encoding="utf-8") == text
        print(f"{PAGE.name} is {'up to date' if fresh else 'stale'}")
        return 0 if fresh else 1
    PAGE.write_text(text, encoding="utf-8")
    print(f"wrote {PAGE.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
