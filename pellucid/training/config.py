"""Settings of a training run, and the whole config that travels with every bundle."""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal, Self

from pydantic import BeforeValidator, Field, field_validator, model_validator

from pellucid import phrasebook
from pellucid.core.config import Config
from pellucid.core.errors import ConfigError
from pellucid.decoding.config import DecodingConfig, continuation_problems, length_limits
from pellucid.equations.choices import Schedule
from pellucid.model.config import ModelSection, TransformerConfig, TranslatorSettings
from pellucid.text.config import (
    SENTENCEPIECE_KINDS,
    DataConfig,
    FileNames,
    NoiseConfig,
    TokenizerConfig,
    as_names,
)
from pellucid.training import LoggerName

_OTHER_NAMES = {
    "data.source": "src train_src trainpref train_sets",
    "data.target": "trainpref tgt trg train_tgt train_sets",
    "data.valid_source": "dev valid validpref valid_sets",
    "data.valid_target": "dev valid validpref valid_sets",
    "data.max_length": "max_sent_length max_source_positions",
    "data.workers": "num_workers",
    "tokenizer.vocabulary_size": "vocab_size num_symbols bpe_operations",
    "tokenizer.shared": "joint_vocab share_vocab joined_dictionary",
    "tokenizer.sampling": "bpe_dropout",
    "model.kind": "arch model_type encoder_type",
    "model.d_model": (
        "hidden_size hidden_dim embedding_dim embed_dim dim_emb word_vec_size model_dim model_size"
    ),
    "model.d_ff": (
        "ff_size ffn_dim transformer_ff transformer_dim_ffn dim_feedforward ffn_embed_dim "
        "intermediate_size"
    ),
    "model.heads": (
        "num_heads n_heads nhead n_head attention_heads num_attention_heads transformer_heads"
    ),
    "model.encoder_layers": "layers n_layers num_layers enc_layers enc_depth num_encoder_layers",
    "model.decoder_layers": "layers n_layers num_layers dec_layers dec_depth num_decoder_layers",
    "model.dropout": "hidden_dropout",
    "model.activation_dropout": "relu_dropout",
    "model.layer_drop": "layerdrop",
    "model.norm": "normalize_before layer_norm pre_norm",
    "model.positions": "position_encoding",
    "model.relative_clip": "max_relative_positions",
    "model.share_embeddings": "share_all_embeddings tied_embeddings",
    "model.tie_output": "tied_embeddings tie_word_embeddings tied_softmax",
    "training.learning_rate": "lr learn_rate",
    "training.batch_tokens": "batch_size mini_batch max_tokens tokens_per_batch",
    "training.accumulate": (
        "accum_count batch_multiplier gradient_accumulation_steps optimizer_delay update_freq"
    ),
    "training.max_steps": "updates max_update max_updates num_steps train_steps steps",
    "training.max_epochs": "epochs max_epoch num_train_epochs",
    "training.max_minutes": "minutes",
    "training.warmup_steps": "warmup warmup_updates lr_warmup learning_rate_warmup",
    "training.schedule": "scheduler scheduling lr_scheduler lr_scheduler_type decay_method",
    "training.adam_betas": "betas",
    "training.adam_eps": "adam_epsilon epsilon",
    "training.clip_norm": "clip clip_grad_norm grad_clip gradient_clip_val max_grad_norm",
    "training.label_smoothing": "smoothing label_smoothing_factor",
    "training.patience": "early_stopping",
    "training.validate_every": "eval_steps valid_freq valid_steps validation_freq",
    "training.save_every": "save_steps save_freq save_checkpoint_steps",
    "training.keep_checkpoints": "save_total_limit keep_checkpoint",
    "training.log_every": "logging_steps log_interval disp_freq report_every",
    "training.average_decay": "ema exponential_smoothing",
    "training.average_last": "average_checkpoints",
    "training.precision": "fp16 bf16 amp mixed_precision",
    "training.device": "gpu cuda use_cuda",
    "training.seed": "random_seed",
    "training.threads": "num_threads",
    "training.sharding": "ddp fsdp",
    "decoding.beam_size": "beam num_beams",
    "decoding.length_penalty": "alpha beam_alpha lenpen",
    "decoding.max_length": "max_len max_output_length",
    "decoding.min_length": "min_len",
    "decoding.no_repeat_ngram": "no_repeat_ngram_size",
    "decoding.replace_unknown": "replace_unk",
    "decoding.sampling.top_k": "top_k",
    "decoding.sampling.top_p": "top_p",
}
"""The names that a setting has in fairseq, JoeyNMT, Marian, OpenNMT-py, Transformers and others."""
OTHER_NAMES: dict[str, tuple[str, ...]] = {
    name: tuple(path for path, names in _OTHER_NAMES.items() if name in names.split())
    for every in _OTHER_NAMES.values()
    for name in every.split()
}
"""The settings that each of these names means."""


Hashes = Annotated[
    tuple[Annotated[str, Field(pattern="^[0-9a-f]{64}$")], ...], BeforeValidator(as_names)
]
"""One SHA-256 or a list of them, in hexadecimal digits."""


class TrainingConfig(Config):
    """How a model learns; the defaults of optimizer and schedule are the paper's (§5.3, §5.4)."""

    batch_tokens: int = Field(4096, ge=1)
    """Most tokens in one batch, padding included, on the longer of the two sides."""
    accumulate: int = Field(1, ge=1)
    """How many batches make one update."""
    max_steps: int | None = Field(None, ge=1)
    """Stop after this many updates."""
    max_epochs: int | None = Field(None, ge=1)
    """Stop after this many passes over the training pairs."""
    max_minutes: float | None = Field(None, gt=0)
    """Stop after this many minutes of training and validating, over all resumed parts."""
    learning_rate: float | None = Field(None, gt=0)
    """The highest learning rate, reached at the end of the warm-up; by default what the paper's
    formula gives there, (d_model · warmup_steps)^-0.5. Must not be set with ``paper``."""
    warmup_steps: int = Field(4000, ge=1)
    """Updates over which the learning rate rises linearly."""
    schedule: Schedule = "inverse_root"
    """How the learning rate falls after the warm-up. ``paper`` is eq. (3) unchanged;
    ``inverse_root`` is the same curve with its peak set by ``learning_rate``. ``cosine`` and
    ``linear`` fall to zero at ``max_steps``, ``max_epochs`` or ``max_minutes``, whichever is
    nearest, and ``wsd`` (warm-up, stable, decay) only in the last ``decay_share`` of the run;
    ``plateau`` falls when validation stops improving; ``constant`` does not fall."""
    decay_share: float = Field(0.2, gt=0, le=1)
    """With ``wsd``: the part of the run, at its end, in which the rate falls."""
    plateau_patience: int = Field(3, ge=1)
    """With ``plateau``: validations in a row without a new best before the rate falls."""
    plateau_factor: float = Field(0.5, gt=0, lt=1)
    """With ``plateau``: the factor by which the rate falls."""
    optimizer: Literal["adam", "sgd", "muon"] = "adam"
    """``adam`` is AdamW; ``sgd`` is plain gradient descent, as Word2Vec uses; ``muon`` moves the
    matrices of blocks and recurrent cells by orthogonalized momentum (Jordan et al. 2024) and all
    else by AdamW, at one learning rate."""
    muon_momentum: float = Field(0.95, ge=0, lt=1)
    """With ``muon``: decay of its running mean of gradients."""
    reduction: Literal["mean", "sum"] = "mean"
    """Whether an update follows the gradient of the mean loss of its target tokens or of their sum.
    With ``sgd`` the sum is about as if the tokens were learned from one by one; Adam's step does
    not depend on the length of the gradient."""
    adam_betas: tuple[float, float] = (0.9, 0.98)
    """Decay of Adam's two running means."""
    adam_eps: float = Field(1e-9, gt=0)
    """Added to Adam's denominator, so that it is never zero."""
    weight_decay: float = Field(0.0, ge=0)
    """Each update multiplies every matrix by 1 - learning rate · weight_decay (AdamW)."""
    clip_norm: float = Field(1.0, ge=0)
    """Gradient clipping: the largest 2-norm over all parameters, of the gradient of the mean loss
    per target token; 0 is no limit."""
    clip_rows: float = Field(0.0, ge=0)
    """The largest 2-norm of a row of a matrix's gradient, after ``reduction``. It limits how far a
    frequent word's vector moves in one update; 0 is no limit."""
    vector_epochs: int = Field(0, ge=0, le=1000)
    """Before the first update, and before the clock of ``max_minutes`` starts, learn word vectors
    from the training pairs by skip-gram, reading them so many times with both sides interleaved;
    the embeddings start from them. 0 starts from random rows. Does nothing with ``--init``."""
    skip_spikes: bool = False
    """Leave out an update whose gradient is far longer than recent ones, instead of clipping it."""
    label_smoothing: float = Field(0.1, ge=0, lt=1)
    """Probability spread evenly over the vocabulary in the labels (§5.4)."""
    r_drop: float = Field(0.0, ge=0)
    """α of R-Drop: every batch is read twice with different dropout masks, and the KL divergence
    between both outputs is part of the loss; 0 is off (Liang et al. 2021 use 5 for translation).
    An update takes twice as long."""
    simcut: float = Field(0.0, ge=0)
    """α of SimCut: every batch is read twice, the second time with zeros in place of some tokens'
    embeddings, and the KL divergence of the second output from the first is part of the loss; 0 is
    off (Gao et al. 2022 use 3 for translation). An update takes twice as long."""
    simcut_rate: float = Field(0.05, gt=0, lt=1)
    """Probability that the second pass of SimCut misses a token, on either side."""
    cipher_weight: float = Field(5.0, ge=0)
    """With ``data.cipher_keys``: α, the weight of the KL divergence between the predictions for a
    plain source and for the enciphered one, as that of R-Drop (Kambhatla et al. 2022 use 5). 0
    learns from both and does not compare them."""
    word_dropout: float = Field(0.0, ge=0, lt=1)
    """Probability that an input token, on either side, is replaced by the unknown token."""
    switch_out: float = Field(0.0, ge=0)
    """τ of SwitchOut: in each sentence n input tokens are replaced by others, drawn uniformly from
    the vocabulary, where n has a probability in proportion to exp(-n / τ); 0 is off (Wang et al.
    2018). With 1 that is 0.58 tokens of a sentence in the mean, with 2 it is 1.5."""
    switch_out_sides: Literal["both", "source", "target"] = "both"
    """The inputs in which SwitchOut replaces tokens; the labels stay as they are."""
    teacher: FileNames = ()
    """A bundle, or a run folder with one, whose probabilities for each token are learned from
    (knowledge distillation, Kim and Rush 2016, §3.1); the run uses its tokenizers. Several bundles
    teach as an ensemble, by the mean of their log-probabilities (compare Sun et al. 2019)."""
    teacher_manifest: Hashes = ()
    """SHA-256 of the manifest of each of these bundles, recorded when the run starts."""
    teacher_weight: float = Field(0.5, ge=0, le=1)
    """Weight of the teacher's distribution in the loss; the labels have the rest."""
    teacher_temperature: float = Field(1.0, gt=0)
    """Temperature of both distributions when they are compared (Hinton et al. 2015)."""
    teacher_top_k: int = Field(0, ge=0)
    """Learn from the teacher's so many likeliest tokens at each position, which are computed once
    for the whole text before the first update (Tan et al. 2019 keep 8); 0 learns from the whole
    distribution, for which every teacher reads every batch again."""
    alignment_weight: float = Field(0.1, gt=0)
    """With ``data.alignments``: the factor of the guided alignment loss, which is added to the
    other. 0.1 is Marian's."""
    rounding: Literal["none", "int8"] = "none"
    """With ``int8`` each gradient is found with matrices that are rounded to 8 bits, and changes
    those that are not: quantization-aware training, for a model that will run in 8 bits (the
    straight-through estimator, Bengio et al. 2013). Validation rounds nothing."""
    average_last: int = Field(1, ge=1)
    """Validate and keep the mean of the parameters at the last so many validations (§6.1)."""
    average_decay: float = Field(0.0, ge=0, lt=1)
    """Or, if above 0, an exponential moving average of the parameters with this decay."""
    validate_every: int = Field(1000, ge=1)
    """Updates between validations; each saves a bundle."""
    validate_beam_size: int = Field(1, ge=1)
    """Beam size of the validation's translations; 1 is greedy."""
    best_by: Literal["bleu", "chrf", "exact_match", "loss"] = "bleu"
    """The validation figure that decides what is best; models of plain text always use the loss.
    Where most references have fewer than four words, chrF decides in place of BLEU."""
    patience: int | None = Field(None, ge=1)
    """Early stopping: stop after so many validations in a row without a new best."""
    keep_bundles: int = Field(1, ge=1)
    """How many of the best bundles are kept, besides the latest."""
    save_every: int = Field(1000, ge=1)
    """Updates between checkpoints to resume from."""
    keep_checkpoints: int = Field(2, ge=1)
    """How many of the latest checkpoints are kept."""
    film_every: int = Field(0, ge=0)
    """Updates between two frames of a film: the parameters as they are then, from before the first
    update on, kept for a film of how the model learned; 0 keeps none."""
    log_every: int = Field(50, ge=1)
    """Updates between lines of the journal."""
    log_to: Annotated[tuple[LoggerName, ...], BeforeValidator(as_names)] = ()
    """Other programs that get the journal's figures: ``tensorboard`` (extra ``board``; event files
    in ``tensorboard/`` of the run folder), ``trackio``, ``wandb`` (offline, in ``wandb/``) and
    ``mlflow`` (in ``mlflow.db``), each with the extra of its name."""
    seed: int = Field(1, ge=0, lt=2**63)
    """Seed of the initial parameters, the order of the data and every dropout mask."""
    threads: int | None = Field(None, ge=1, le=1024)
    """CPU threads; by default PyTorch's own number."""
    precision: Literal["auto", "fp32", "bf16", "fp16"] = "fp32"
    """Mixed precision: the dtype of matrix products. ``auto`` uses bfloat16 where a short
    measurement at the start shows that it is faster. ``fp16`` is for accelerators without bfloat16
    and scales the loss, so that small gradients do not become zero. Parameters and optimizer are
    float32 in any case."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Where to train; ``auto`` uses an accelerator if there is one."""
    sharding: Literal["none", "ddp", "fsdp"] = "none"
    """The work that the processes of torchrun divide: with ``ddp`` the batches of an update, with
    ``fsdp`` the model too. With several processes ``none`` means ``ddp``."""
    init: str | None = None
    """A bundle, or a run folder with one, to fine-tune (``--init``): the run starts with its
    parameters, tokenizers and model settings, and with a new optimizer."""
    parent: str | None = Field(None, pattern="^[0-9a-f]{64}$")
    """SHA-256 of the manifest of that bundle, recorded when the run starts."""
    freeze: Annotated[tuple[str, ...], BeforeValidator(as_names)] = ()
    """Parameters that are not trained, by shell-style patterns of their names, such as
    ``encoder.*``."""

    @field_validator("adam_betas", mode="before")
    @classmethod
    def _from_toml_array(cls, value: object) -> object:
        return tuple(value) if isinstance(value, list) else value

    @model_validator(mode="after")
    def _ends_somewhere(self) -> Self:
        problems = []
        limits = self.max_steps, self.max_minutes, self.max_epochs
        if limits == (None, None, None):
            problems.append("one of max_steps, max_minutes and max_epochs must be set")

        # Eq. (3) has no free factor: its peak follows from d_model and the warm-up.
        if self.schedule == "paper" and self.learning_rate is not None:
            problems.append(
                "schedule='paper' is eq. (3) and takes no learning_rate"
                " (schedule='inverse_root' is its curve with a peak of your own)"
            )

        if self.init == "":
            problems.append("init must name the bundle to begin with (--init BUNDLE)")
        elif (self.init is None) != (self.parent is None):
            # A path alone could name another bundle tomorrow, and a hash alone opens nothing.
            problems.append(
                "init and parent belong together, a bundle and the SHA-256 of its manifest"
                " (read_config and --init write them down)"
            )
        if len(self.teacher) != len(self.teacher_manifest):
            problems.append(
                "teacher and teacher_manifest belong together, each bundle and the SHA-256 of its"
                " manifest (read_config writes it down)"
            )

        if self.optimizer == "muon" and self.sharding == "fsdp":
            problems.append("optimizer=muon needs whole matrices, and sharding=fsdp splits them")
        if self.rounding != "none" and self.sharding == "fsdp":
            problems.append("rounding=int8 needs whole matrices, and sharding=fsdp splits them")
        if self.r_drop and self.simcut:
            problems.append(
                "r_drop and simcut exclude each other: both say what the second pass is"
            )
        if self.average_last > 1 and self.average_decay > 0:
            problems.append("average_last and average_decay exclude each other")
        if not all(0 <= beta < 1 for beta in self.adam_betas):
            problems.append(f"adam_betas must lie in [0, 1), got {self.adam_betas}")

        if problems:
            raise ValueError("; ".join(problems))
        return self


class PhrasebookConfig(Config):
    """The corpus that Pellucid generates itself, used when ``data.source`` names no file."""

    pairs: int = Field(100_000, ge=1)
    """How many training pairs are generated."""
    held_out: int = Field(1000, ge=1)
    """How many pairs are held out for validation, and as many again for the test."""
    seed: int = Field(0, ge=0, lt=2**63)
    """Seed of all its sentences."""
    style: phrasebook.Style = "plain"
    """``plain``: both sides in lower case, without a full stop. ``typed``: French as people type
    it, with what they say first to each other, and English as it is written."""


class RunConfig(Config):
    """Everything that decides a training run."""

    other_names: ClassVar[Mapping[str, tuple[str, ...]]] = OTHER_NAMES

    data: DataConfig = DataConfig()
    """The training and validation text."""
    phrasebook: PhrasebookConfig = PhrasebookConfig()
    """The corpus that Pellucid generates, used if ``data`` names no files."""
    tokenizer: TokenizerConfig = TokenizerConfig()
    """How text becomes ids."""
    noise: NoiseConfig = NoiseConfig()
    """Odd copies of the training pairs: other case, typing errors, stray spaces."""
    model: ModelSection = TransformerConfig()
    """The architecture."""
    training: TrainingConfig
    """How the model learns: batches, learning rate, when to stop, what to save."""
    decoding: DecodingConfig = DecodingConfig()
    """How the trained model searches, unless a command sets something else."""

    @model_validator(mode="after")
    def _parts_fit(self) -> Self:
        problems = self._pair_problems() if self.model.translates else self._text_problems()
        if self.tokenizer.kind == "marian" and self.training.init is None:
            problems.append(
                "tokenizer.kind=marian comes with an imported model and cannot be trained"
                " (begin with that model by --init)"
            )

        # A sentence of max_length tokens has one position more, for BOS or EOS.
        limit = self.model.max_length
        if limit is not None and self.data.max_length + 1 > limit:
            problems.append(
                f"data.max_length={self.data.max_length} and a stop do not fit into"
                f" model.max_positions={limit}"
            )
        problems += self._objective_problems()
        problems += self._alignment_problems()
        problems += self._noise_problems()
        problems += self._cipher_problems()

        # The bundles of this run will carry the section, and opening them would refuse it.
        problems += [f"decoding.{problem}" for problem in self.decoding.problems_as_carried()]
        problems += self._validation_problems()

        if problems:
            raise ValueError("; ".join(problems))
        return self

    def _validation_problems(self) -> list[str]:
        problems = []
        names = [name for name in ("valid_source", "valid_text") if getattr(self.data, name)]
        if names and not (self.data.source or self.data.text):
            problems.append(
                f"data.{names[0]} needs training text, without which the run learns and validates"
                " by the phrasebook (name it by data.source and data.target, or by data.text)"
            )

        # Found now, and not by the first validation after a thousand updates.
        if self.model.translates:
            try:
                length_limits([], self.decoding, self.model.max_length)
            except ConfigError as error:
                problems.append(f"decoding.{error}")
            try:
                validation_search(self)
            except ConfigError as error:
                problems.append(
                    f"training.validate_beam_size={self.training.validate_beam_size} must fit the"
                    f" search of the run, {error}"
                )
        return problems

    def _objective_problems(self) -> list[str]:
        kind, wanted, problems = self.model.kind, self.training, []
        if not self.model.predicts_tokens:
            for name in ("r_drop", "simcut", "word_dropout", "switch_out", "teacher"):
                if getattr(wanted, name):
                    problems.append(
                        f"training.{name} is for models that say the next token, not for"
                        f" model.kind={kind}"
                    )

        rates = "dropout", "attention_dropout", "activation_dropout"

        # Without any randomness both passes are the same, and their KL divergence is zero. Skipped
        # blocks do not count: both go through the model as one batch, which skips the same.
        hides = wanted.word_dropout or wanted.switch_out
        random = hides or any(getattr(self.model, rate, 0.0) for rate in rates)
        if wanted.r_drop and self.model.predicts_tokens and not random:
            problems.append("training.r_drop compares two passes, which are alike without dropout")

        if wanted.teacher_top_k and not wanted.teacher:
            problems.append("training.teacher_top_k needs training.teacher, whose tokens they are")
        if wanted.teacher_top_k and (self.tokenizer.sampling or self.noise.is_on):
            problems.append(
                "training.teacher_top_k asks the teacher once, so the text must be the same in"
                " every epoch: tokenizer.sampling and noise must be off"
            )
        return problems

    def _alignment_problems(self) -> list[str]:
        if not self.data.alignments:
            return []
        if not isinstance(self.model, TransformerConfig):
            return [f"data.alignments is for model.kind=transformer, not {self.model.kind}"]

        problems = []
        layers, heads = self.model.decoder_layers, self.model.heads
        layer, head = self.decoding.align_layer, self.decoding.align_head
        if layer is None or layer >= layers:
            problems.append(
                "data.alignments needs decoding.align_layer, the decoder layer that learns them,"
                f" from 0 to {layers - 1}" + ("" if layer is None else f", got {layer}")
            )
        if head is not None and head >= heads:
            problems.append(f"decoding.align_head must be below {heads}, the heads, got {head}")
        if self.tokenizer.sampling or self.noise.is_on:
            problems.append(
                "data.alignments is read once, so the text must be the same in every epoch:"
                " tokenizer.sampling and noise must be off"
            )
        return problems

    def _noise_problems(self) -> list[str]:
        if not self.noise.is_on:
            return []
        if not self.model.translates:
            return [f"noise is for models that learn from pairs, not for kind={self.model.kind}"]

        if self.noise.terms and self.data.glossary is None:
            return ["noise.terms needs data.glossary, the file of the terms"]
        # The copies are made of the text that the ids of a store decode to: it must be exact.
        kinds = {self.tokenizer.kind, self.tokenizer.target_kind or self.tokenizer.kind}
        others = sorted(kinds.difference(SENTENCEPIECE_KINDS))
        return [f"noise needs tokenizer.kind bpe or unigram, got {each}" for each in others]

    def _cipher_problems(self) -> list[str]:
        if not self.data.cipher_keys:
            return []
        if not self.model.translates:
            return [
                "data.cipher_keys is for models that learn from pairs, not for"
                f" model.kind={self.model.kind}"
            ]

        problems = [
            f"data.cipher_keys and training.{name} exclude each other: both say what the second"
            " pass is"
            for name in ("r_drop", "simcut")
            if getattr(self.training, name)
        ]
        if self.data.alignments:
            problems.append(
                "data.cipher_keys and data.alignments exclude each other: the words that are linked"
                " are those of plain sources"
            )
        if self.noise.terms:
            problems.append(
                "data.cipher_keys and noise.terms exclude each other: the translations that stand"
                " in the source would be enciphered"
            )
        # Copies are made of the text that the ids of a store decode to: it must be exact.
        if self.tokenizer.kind not in SENTENCEPIECE_KINDS:
            problems.append(
                f"data.cipher_keys needs tokenizer.kind bpe or unigram, got {self.tokenizer.kind}"
            )
        return problems

    def _pair_problems(self) -> list[str]:
        problems, model = [], self.model
        is_shared = isinstance(model, TranslatorSettings) and model.share_embeddings
        if is_shared and not self.tokenizer.shared:
            problems.append(
                "model.share_embeddings needs tokenizer.shared=true"
                " (or set model.share_embeddings=false)"
            )
        if self.data.both_directions and not self.tokenizer.shared:
            problems.append("data.both_directions needs tokenizer.shared=true")

        # A fine-tuned run has the embeddings of its bundle, and reads neither setting.
        wants_pairs = self.training.vector_epochs > 0 and self.training.init is None
        if wants_pairs and model.pretrained_vectors is not None:
            problems.append(
                "training.vector_epochs and model.pretrained_vectors exclude each other: embeddings"
                " start from one of them"
            )

        if self.data.text or self.data.valid_text:
            problems.append(
                f"model.kind={self.model.kind} learns from pairs: name them by data.source and"
                " data.target, not by data.text"
            )
        return problems

    def _text_problems(self) -> list[str]:
        kind = self.model.kind
        problems = []
        if self.data.both_directions:
            problems.append(f"data.both_directions is for pairs, not for model.kind={kind}")
        if self.training.vector_epochs:
            problems.append(f"training.vector_epochs is for pairs, not for model.kind={kind}")
        if self.data.source or self.data.valid_source:
            problems.append(
                f"model.kind={kind} learns from plain text: name it by data.text, not by"
                " data.source and data.target"
            )
        if kind == "decoder":
            problems += [f"decoding: {each}" for each in continuation_problems(self.decoding)]
        if not self.tokenizer.shared:
            problems.append(f"model.kind={kind} has one side: tokenizer.shared must be true")
        if self.tokenizer.sampling_sides != "both":
            problems.append(
                f"model.kind={kind} has one side: tokenizer.sampling_sides must be both"
            )
        if self.training.switch_out and self.training.switch_out_sides == "source":
            problems.append(
                f"model.kind={kind} reads no source: training.switch_out_sides=source would switch"
                " nothing"
            )
        return problems


def validation_search(config: RunConfig) -> DecodingConfig:
    """The search of a validation: that of the run, with ``training.validate_beam_size``.

    It gives one translation for each source, whatever its quality, and no alignment. A beam of 1
    has nothing to rank or to split, so ``mbr``, ``diverse_groups`` and ``coverage_penalty`` are
    then off. Raises ConfigError if a larger beam does not fit the other settings.
    """
    # with what the noise of the run sets, as the bundles of the run will search
    own = config.decoding.after_noise(config.noise.to_table())
    beam_size = config.training.validate_beam_size
    greedy = {"mbr": False, "diverse_groups": 1, "coverage_penalty": 0.0}
    changes = {"beam_size": beam_size, "n_best": 1, "align": False, "below": None}
    return own.changed(changes | (greedy if beam_size == 1 else {}))
