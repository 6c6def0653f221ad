"""The model card: what a bundle is, how good, and how to use it."""

from pathlib import Path

from pellucid import __version__
from pellucid.training.config import RunConfig
from pellucid.training.data import TrainingData
from pellucid.training.progress import Progress
from pellucid.training.validation import Validation


def model_card(
    config: RunConfig, data: TrainingData, validation: Validation, progress: Progress
) -> str:
    """The card as Markdown, every figure with what is needed to repeat it."""
    model, training = config.model, config.training
    search = f"beam {training.validate_beam_size}"
    return f"""# A {model.kind} translation model

Trained with Pellucid {__version__}.{_origin(config)}

## Data

- Training pairs: {len(data.rows):,} from {data.description} (fingerprint `{data.fingerprint}`)
- Validation pairs: {len(data.valid_sources):,}
- Tokenizer: {data.target_tokenizer.kind}, {data.source_tokenizer.vocabulary_size:,} source and
  {data.target_tokenizer.vocabulary_size:,} target tokens

## Model

{model.summary()}.
Trained for {progress.step:,} updates ({progress.target_tokens:,} target tokens,
{progress.seconds / 60:.1f} minutes), seed {training.seed}.

## Validation scores

| figure | value | signature |
|---|---|---|
| BLEU | {validation.bleu:.2f} | {validation.bleu_signature}, {search} |
| chrF | {validation.chrf:.2f} | {validation.chrf_signature}, {search} |
| exact match | {validation.exact_match:.2f}% | {search} |
| cross-entropy | {validation.loss:.4f} nats a token | teacher forcing |

## Use

```python
import pellucid

translator = pellucid.load("path/to/this/folder")
[translation] = translator.translate(["..."])
print(translation.text)
```

or `echo "..." | pellucid translate path/to/this/folder`.
"""


def _origin(config: RunConfig) -> str:
    """Which bundle the run began with, if any."""
    training = config.training
    if training.init is None:
        return ""
    frozen = f" Frozen: {', '.join(f'`{each}`' for each in training.freeze)}."
    return (
        f"\nFine-tuned from the bundle `{Path(training.init).name}`, whose manifest has the SHA-256"
        f"\n`{training.parent}`.{frozen if training.freeze else ''}"
    )
