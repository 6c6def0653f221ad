"""The full record of a search: what it considered, what it dropped and why."""

import dataclasses
import json
import logging
import math
from collections.abc import Sequence
from typing import Any, Literal

from pellucid.core.errors import ConfigError, DataError
from pellucid.core.special import EOS_ID
from pellucid.decoding.config import DecodingConfig
from pellucid.decoding.engine import SearchWatcher
from pellucid.decoding.odd_lines import OddLine
from pellucid.decoding.requests import ReadLine, Request, Translatable, as_requests, read_requests
from pellucid.decoding.result import Translation, make_hypothesis
from pellucid.decoding.search.candidates import Rules
from pellucid.decoding.search.general_beam import Candidate, Expansion, Node, general_beam_search
from pellucid.decoding.search.required_phrases import make_required
from pellucid.decoding.search.scoring import score_lines
from pellucid.decoding.search.search import (
    inference,
    make_constraints,
    pad_sources,
    searched_model,
)
from pellucid.decoding.translator import Translator, require_translator
from pellucid.decoding.writing import write_hypothesis
from pellucid.model.seq2seq import Searchable
from pellucid.text.tokenizers.interface import Tokenizer

_log = logging.getLogger("pellucid")


@dataclasses.dataclass(frozen=True)
class SearchNode:
    """A token after a prefix that the search considered, and what became of it."""

    number: int
    """The number of the node in the tree; 0 is the root, which has no token."""
    parent: int | None
    """The node that it continues; None for the root."""
    group: int
    """The group of a diverse beam that considered it, from 0."""
    token: str
    length: int
    """The number of its tokens, the stop included."""
    rank: int | None
    """The rank among the candidates of the group at this step, from 0; None if ruled out."""
    log_prob: float
    """log p(token | prefix, source) under the model, in nats."""
    total: float
    """Summed over the prefix and the token."""
    score: float | None
    """Total over the length penalty, if it finished."""
    verdict: Literal["goes on", "finished", "pruned", "ruled out", "left"]
    """``left``: it was still live when the search ended."""
    reason: str
    """Why it was pruned, ruled out or left; else empty."""


@dataclasses.dataclass(frozen=True)
class ReferenceVerdict:
    """The verdict of the search and the model on a given translation."""

    translation: Translation
    """The reference with the log-probability of each token."""
    verdict: Literal["found", "ruled out", "search error", "model error"]
    """``found``: its text is among the n best. ``ruled out``: a constraint or a setting excludes
    it. ``search error``: the model scores it higher than the best that was found, so the search
    missed it. ``model error``: the model scores it lower, so no search could have preferred it."""
    lost_at: int | None
    """The number of the first of its tokens, from 0, that the search did not follow, or, if it is
    ruled out, the first that is excluded. The stop is the last one."""
    lost_because: str
    """Why it did not; empty if it followed all of them."""


@dataclasses.dataclass(frozen=True)
class SearchTree:
    """Everything a beam search considered for one sentence."""

    source: str
    source_tokens: tuple[str, ...]
    settings: dict[str, Any]
    nodes: tuple[SearchNode, ...]
    """In the order in which they were considered; a node's index is its number."""
    translations: tuple[Translation, ...]
    """The n best, best first."""
    ends: tuple[int, ...]
    """The node in which each of them finished."""
    reference: ReferenceVerdict | None

    def path(self, number: int) -> tuple[SearchNode, ...]:
        """The nodes from the root's child to ``number``."""
        nodes = []
        node = self.nodes[number]
        while node.parent is not None:
            nodes.append(node)
            node = self.nodes[node.parent]
        return tuple(reversed(nodes))

    def to_json(self) -> str:
        """One JSON object with the names of the fields; of translations text, score and tokens."""
        entry: dict[str, Any] = {
            "source": self.source,
            "source_tokens": self.source_tokens,
            "settings": self.settings,
            "translations": [_figures(each) for each in self.translations],
            "ends": self.ends,
            "reference": None,
            "nodes": [vars(node) for node in self.nodes],
        }

        if self.reference is not None:
            entry["reference"] = {
                **_figures(self.reference.translation),
                "verdict": self.reference.verdict,
                "lost_at": self.reference.lost_at,
                "lost_because": self.reference.lost_because,
            }
        return json.dumps(entry, ensure_ascii=False)


def _figures(translation: Translation) -> dict[str, Any]:
    return {
        "translation": translation.text,
        "score": translation.score,
        "tokens": translation.tokens,
        "token_log_probs": translation.token_log_probs,
    }


def explain_search(
    translator: Translator,
    source: str | Request,
    reference: str | None = None,
    settings: DecodingConfig | None = None,
    *,
    watcher: SearchWatcher | None = None,
) -> SearchTree:
    """Search for the translation of one text and keep the tree.

    With a ``reference`` that was not found, the verdict names the search or the model as the cause.
    The search is the general one, which a law holds to the results of the fast one. A line without
    its emoji, or in lower case, is shown and searched as ``translate`` searches it; it is not
    split into sentences, and nothing is put back or aligned.

    Raises ConfigError for sampling and repredict, which have no tree, and for mbr and
    coverage_penalty, which choose after the search, DataError for a source that is not searched,
    what the watcher raises, and as ``translate``. Warns if the translator computes in 8 bits, as
    the search that is explained does not.
    """
    require_translator(translator)
    settings = settings or translator.settings
    for name, is_set, reason in (
        ("sampling", settings.sampling is not None, "drops nothing, so there is no"),
        ("repredict", settings.repredict, "drops nothing, so there is no"),
        ("mbr", settings.mbr, "chooses after the search, so its choice is not that of the"),
        (
            "coverage_penalty",
            settings.coverage_penalty != 0.0,
            "chooses after the search, so its choice is not that of the",
        ),
    ):
        if is_set:
            raise ConfigError(f"{name} {reason} search to explain")

    if "int8" in (computed := translator.engine.signature(settings)):
        _log.warning("the tree is that of torch in float32; %s may find others", computed)
    bundle = translator.bundle
    [request] = as_requests([source], settings, 1)
    odd = translator.odd_line(request, settings)
    if reference is not None:
        reference = odd.plain_target(reference)
    [line] = read_requests([odd.plain], bundle, settings)
    if line.required_ids:
        settings = settings.requiring()
    if line.is_blank:
        raise DataError("a search needs a source that holds a word, got none")

    # sees logits before the rules and candidates after, so it can name the rule that excluded one
    recorder = _Recorder(bundle.target_tokenizer, settings)
    with inference(bundle.model):
        constraints = make_constraints([line], bundle, settings)
        model: Searchable[Any] = searched_model(bundle.model, settings)
        rows = pad_sources([line.source_ids], bundle.model)
        [hypotheses] = general_beam_search(model, rows, settings, constraints, watcher, recorder)

    translations = tuple(write_hypothesis(line, each, bundle) for each in hypotheses)
    verdict = None
    if reference is not None:
        verdict = _judge(bundle, line, odd, reference, settings, translations, recorder)

    return SearchTree(
        source=line.request.source,
        source_tokens=translations[0].source_tokens,
        settings=_plain(settings),
        nodes=tuple(recorder.nodes),
        translations=translations,
        ends=tuple(recorder.number_of[(*each.ids, EOS_ID)] for each in hypotheses),
        reference=verdict,
    )


def _plain(settings: DecodingConfig) -> dict[str, Any]:
    """The settings as JSON values; infinity, which JSON lacks, becomes a string."""
    table = settings.to_table()
    infinite = {name: str(value) for name, value in table.items() if value == math.inf}
    return table | infinite


class _Recorder:
    """A listener of the general search that records its one sentence as nodes."""

    def __init__(self, tokenizer: Tokenizer, settings: DecodingConfig) -> None:
        root = SearchNode(0, None, 0, "", 0, None, 0.0, 0.0, None, "goes on", "")
        self.nodes = [root]
        self.number_of: dict[tuple[int, ...], int] = {(): 0}
        """Keyed by tokens; of several groups with the same tokens the one that got furthest."""
        self._tokenizer = tokenizer
        self.rules: Rules
        """The rules of the search, known from its first step on."""
        self._beam = settings.beam_size // settings.diverse_groups
        self._numbers: dict[tuple[int, int], int] = {}
        """From (group, number in the group) to the number in the tree."""

    def expanded(self, sentence: int, group: int, expansion: Expansion) -> None:
        """Record the likeliest tokens of the model that the rules exclude."""
        self.rules = expansion.rules
        # before the rules, as the model alone would rank the tokens
        log_probs = expansion.logits.double().log_softmax(dim=-1)
        count = min(self._beam, log_probs.shape[-1])
        for node, row, allowed in zip(expansion.live, log_probs, expansion.allowed, strict=True):
            values, tokens = row.topk(count)
            for value, token in zip(values.tolist(), tokens.tolist(), strict=True):
                reason = expansion.rules.why_not(sentence, node.ids, token)
                if reason and float(allowed[token]) == float("-inf") != value:
                    self._add(group, node, token, value, "ruled out", reason)

    def considered(self, sentence: int, group: int, candidates: Sequence[Candidate]) -> None:
        """Record each candidate with its verdict."""
        del sentence  # there is one
        for rank, candidate in enumerate(candidates):
            node = candidate.node
            number = len(self.nodes)
            self._numbers[group, node.number] = number
            self.nodes.append(
                SearchNode(
                    number=number,
                    # numbers count within a group; the root, which no group numbers, is 0
                    parent=self._numbers.get((group, node.parent or 0), 0),
                    group=group,
                    token=self._token(node.ids[-1]),
                    length=len(node.ids),
                    rank=rank,
                    log_prob=node.log_probs[-1],
                    total=node.total,
                    score=candidate.score,
                    verdict=candidate.verdict,
                    reason=candidate.reason,
                )
            )

            self._remember(node.ids, number)

    def left(self, sentence: int, group: int, live: Sequence[Node], reason: str) -> None:
        """Record which nodes were live when the search ended."""
        del sentence
        for node in live:
            number = self._numbers[group, node.number]
            changes: dict[str, Any] = {"verdict": "left", "reason": reason}
            self.nodes[number] = dataclasses.replace(self.nodes[number], **changes)

    def _add(
        self, group: int, parent: Node, token: int, log_prob: float, verdict: Any, reason: str
    ) -> None:
        number = len(self.nodes)
        self.nodes.append(
            SearchNode(
                number=number,
                parent=self._numbers.get((group, parent.number), 0),
                group=group,
                token=self._token(token),
                length=len(parent.ids) + 1,
                rank=None,
                log_prob=log_prob,
                total=parent.total + log_prob,
                score=None,
                verdict=verdict,
                reason=reason,
            )
        )

        self._remember((*parent.ids, token), number)

    def _remember(self, ids: tuple[int, ...], number: int) -> None:
        known = self.number_of.get(ids)
        # several groups may hold the same tokens: a node that was dropped gives way
        if known is None or self.nodes[known].verdict not in ("goes on", "finished"):
            self.number_of[ids] = number

    def _token(self, token: int) -> str:
        return self._tokenizer.tokens([token])[0]


def _judge(
    bundle: Translatable,
    line: ReadLine,
    odd: OddLine,
    reference: str,
    settings: DecodingConfig,
    translations: Sequence[Translation],
    recorder: _Recorder,
) -> ReferenceVerdict:
    ids = tuple(bundle.target_tokenizer.encode(reference))
    for each in translations:
        # a search may spell a text in other tokens than the tokenizer
        if each.token_ids == ids or odd.plain_target(each.text) == reference:
            return ReferenceVerdict(dataclasses.replace(each, text=reference), "found", None, "")

    # scored by the model alone, so that a reference that the rules exclude has a score too
    [scored] = score_lines(bundle, [line.source_ids], [ids], settings)
    if recorder.rules.free_stop and len(ids) == recorder.rules.limits[0]:
        # the search would have given it the stop for nothing
        log_probs = (*scored.token_log_probs[:-1], 0.0)
        scored = make_hypothesis((*ids, EOS_ID), log_probs, settings.penalty)
    translation = dataclasses.replace(write_hypothesis(line, scored, bundle), text=reference)

    excluded = _excluded(ids, recorder.rules)
    if excluded is not None:
        return ReferenceVerdict(translation, "ruled out", *excluded)
    is_better = scored.score > translations[0].score
    blamed: Literal["search error", "model error"] = "search error" if is_better else "model error"
    return ReferenceVerdict(translation, blamed, *_lost(ids, recorder))


def _excluded(ids: tuple[int, ...], rules: Rules) -> tuple[int, str] | None:
    """The first of these ids, or the stop after them, that a rule excludes, and the rule."""
    sequence = (*ids, EOS_ID)
    [required] = make_required(rules.constraints, rules.limits)

    for position, token in enumerate(sequence):
        reason = rules.why_not(0, sequence[:position], token)
        if not reason and required is not None:
            begun = sequence[: position + 1]
            reason = required.why_not(begun, required.left(begun), rules.limits[0])
        if reason:
            return position, reason
    return None


def _lost(ids: tuple[int, ...], recorder: _Recorder) -> tuple[int | None, str]:
    """The first of these ids that the search did not follow, and why."""
    sequence = (*ids, EOS_ID)

    for position in range(len(sequence)):
        number = recorder.number_of.get(sequence[: position + 1])
        if number is None:
            return position, "not among the candidates that were considered"
        node = recorder.nodes[number]
        if node.verdict == "left":
            # the search held all tokens up to here, and ended before the next one
            return position + 1, node.reason
        if node.verdict not in ("goes on", "finished"):
            return position, node.reason
    return None, "it finished, and others that finished were better"
