"""A Transformer's forward pass as three ONNX graphs, node by node, in the order of the paper.

A graph is built with the helpers of the ``onnx`` package instead of a tracer: it follows the
equations, its nodes carry our names, and no branch depends on an example input.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from torch import Tensor

from pellucid.core.special import BOS_ID
from pellucid.equations.positions import sinusoidal_positions, tensor2tensor_positions
from pellucid.model.config import TransformerConfig

ENCODER, DECODER, STEP = "encoder_model", "decoder_model", "decoder_with_past_model"
"""The three graphs, named as Hugging Face Optimum names its files."""
SINUSOIDS = 4096
"""Positions stored as a table: ONNX Runtime's sine of a large angle is not exact in float32."""

Shape = Sequence[str | int]


class Graph:
    """Nodes and constants of one graph, each with a descriptive name.

    ``onnx`` is the imported package, which is an optional dependency.
    """

    def __init__(self, onnx: Any) -> None:
        self._onnx = onnx
        self._nodes: list[Any] = []
        self._constants: dict[str, Any] = {}
        self._inputs: list[Any] = []
        self._outputs: list[Any] = []

    def input(self, name: str, shape: Shape, *, ids: bool = False) -> str:
        """Declare an input: ids (int64), or numbers (float32)."""
        self._inputs.append(self._declare(name, shape, ids=ids))
        return name

    def output(self, value: str, name: str, shape: Shape, *, ids: bool = False) -> None:
        """Declare an output: ``value`` under the name ``name``, as ids or numbers."""
        # Identity renames: the value keeps our name inside the graph, the output gets Optimum's.
        self._nodes.append(self._onnx.helper.make_node("Identity", [value], [name], name=name))
        self._outputs.append(self._declare(name, shape, ids=ids))

    def constant(self, name: str, value: Tensor | npt.NDArray[Any]) -> str:
        """Store a tensor under ``name``, once; return the name."""
        if name not in self._constants:
            array = value.numpy() if isinstance(value, Tensor) else value
            array = np.ascontiguousarray(array)
            self._constants[name] = self._onnx.numpy_helper.from_array(array, name)
        return name

    def integers(self, *values: int) -> str:
        """Store a small list of integers, such as a shape or axes; equal lists are stored once."""
        name = "integers_" + "_".join(str(value).replace("-", "minus_") for value in values)
        return self.constant(name, np.array(values, dtype=np.int64))

    def beside(self) -> "Graph":
        """An empty graph, for a node that runs one."""
        return Graph(self._onnx)

    def add(
        self, kind: str, inputs: Sequence[str], name: str, attributes: Mapping[str, Any] = {}
    ) -> str:
        """Add a node with a single output, which has the name of the node."""
        made = self._onnx.helper.make_node(kind, list(inputs), [name], name=name, **attributes)
        self._nodes.append(made)
        return name

    def scan(self, start: str, inputs: Sequence[str], body: "Graph", name: str) -> tuple[str, str]:
        """Run ``body`` over the first axis of ``inputs``; the last state, and all states.

        The body has the state before as its first input; both of its outputs are the state after.
        """
        made = self._onnx.helper.make_node(
            "Scan",
            [start, *inputs],
            [f"{name}/last", f"{name}/all"],
            name=name,
            num_scan_inputs=len(inputs),
            body=body.content(f"{name}/body"),
        )
        self._nodes.append(made)
        return f"{name}/last", f"{name}/all"

    def content(self, name: str) -> Any:
        """The graph itself, as a model or a node that runs it holds it."""
        constants = list(self._constants.values())
        return self._onnx.helper.make_graph(
            self._nodes, name, self._inputs, self._outputs, constants
        )

    def model(self, name: str, opset: int, ir_version: int, producer: str) -> Any:
        """The graph as an ONNX model."""
        helper = self._onnx.helper
        return helper.make_model(
            self.content(name),
            opset_imports=[helper.make_opsetid("", opset)],
            ir_version=ir_version,
            producer_name=producer,
        )

    def _declare(self, name: str, shape: Shape, *, ids: bool) -> Any:
        types = self._onnx.TensorProto
        kind = types.INT64 if ids else types.FLOAT
        return self._onnx.helper.make_tensor_value_info(name, kind, list(shape))


class Blocks:
    """The blocks of one model, written into one graph."""

    def __init__(
        self, graph: Graph, config: TransformerConfig, tensors: Mapping[str, Tensor]
    ) -> None:
        self.graph = graph
        self.config = config
        self.tensors = tensors
        self.places = "", ""
        """Names of the values that hold the first position of the current tokens and the end."""

    def embed(self, side: str, ids: str, start: str | None) -> str:
        """√d · W[id] plus the encoding of its position, counted from ``start`` (or 0).

        With rotary positions nothing is added; self-attention rotates queries and keys instead.
        """
        graph, name = self.graph, f"{side}_embedding"
        x = graph.add("Gather", [self._stored(f"{name}.weight"), ids], f"{name}/tokens")
        if self.config.scale_embeddings:
            scale = np.array(math.sqrt(self.config.d_model), dtype=np.float32)
            x = graph.add("Mul", [x, graph.constant("scale", scale)], f"{name}/scaled")
        if side == "target" and self.config.start_symbol == "zero":
            x = self._start_from_zero(ids, x, name)

        length = self.axis_size(ids, 1, f"{name}/length")
        first = start or graph.integers(0)
        self.places = first, graph.add("Add", [first, length], f"{name}/end")

        if self.config.positions == "rotary":
            return x

        if self.config.positions == "learned":
            table = self._stored("target_embedding.positions.learned")  # shared by both sides
        else:
            # (SINUSOIDS, d_model), computed in float64 and rounded once.
            is_t2t = self.config.positions == "sinusoidal_t2t"
            waves = tensor2tensor_positions if is_t2t else sinusoidal_positions
            table = graph.constant("sinusoids", waves(SINUSOIDS, self.config.d_model).float())

        return graph.add("Add", [x, self._of_places(table, f"{name}/positions")], f"{name}/sum")

    def _start_from_zero(self, ids: str, x: str, name: str) -> str:
        """The embeddings ``x``, with a vector of zeros for the start."""
        graph = self.graph
        start = graph.constant("start", np.array(BOS_ID, dtype=np.int64))
        is_start = graph.add("Equal", [ids, start], f"{name}/is_start")
        # (batch, token, 1)
        is_start = graph.add("Unsqueeze", [is_start, graph.integers(2)], f"{name}/is_start_row")
        zero = graph.constant("zero", np.array(0.0, dtype=np.float32))
        return graph.add("Where", [is_start, zero, x], f"{name}/from_zero")

    def turn(self, x: str) -> str:
        """Rotary positions: rotate each pair of features of queries or keys by their position.

        x cos + (x R) sin, where x R = (-x₂ᵢ₊₁, x₂ᵢ) for each pair (x₂ᵢ, x₂ᵢ₊₁). ``x`` is (batch,
        head, token, feature). Source: Su et al. (2021), §3.4.2.
        """
        if self.config.positions != "rotary":
            return x
        graph, size = self.graph, self.config.key_size

        # The same waves as for sinusoidal positions, but of the width of one head.
        waves = sinusoidal_positions(SINUSOIDS, size).float().numpy()

        # R has a quarter turn in each diagonal block: one product instead
        # of slicing the pairs apart.
        quarter = np.kron(np.eye(size // 2), [[0.0, 1.0], [-1.0, 0.0]]).astype(np.float32)

        # Sines and cosines alternate in the sinusoid; both features of a pair use the same angle.
        sines = graph.constant("sines", waves[:, ::2].repeat(2, axis=1))
        cosines = graph.constant("cosines", waves[:, 1::2].repeat(2, axis=1))
        across = graph.add("MatMul", [x, graph.constant("quarter_turn", quarter)], f"{x}/across")

        parts = (
            graph.add("Mul", [value, self._of_places(table, f"{x}/{table}")], f"{x}/by_{table}")
            for value, table in ((x, cosines), (across, sines))
        )
        return graph.add("Add", list(parts), f"{x}/turned")

    def _of_places(self, table: str, name: str) -> str:
        """The rows of ``table`` for the positions of the current tokens."""
        return self.graph.add("Slice", [table, *self.places, self.graph.integers(0)], name)

    def axis_size(self, value: str, axis: int, name: str) -> str:
        """The size of an axis of ``value``, as a list of one number."""
        shape = self.graph.add("Shape", [value], f"{name}_shape")
        return self.graph.add("Gather", [shape, self.graph.integers(axis)], name)

    def mask(self, attention_mask: str) -> str:
        """The source positions that may be attended to, as (batch, 1, 1, source)."""
        kinds = {"to": 9}  # TensorProto.BOOL
        # Ids and masks are int64 at the door, as in transformers; Where takes booleans.
        is_real = self.graph.add("Cast", [attention_mask], "mask/is_real", kinds)
        return self.graph.add("Unsqueeze", [is_real, self.graph.integers(1, 2)], "mask/may_attend")

    def causal_mask(self, ids: str) -> str:
        """Each token may attend to itself and those before it, as (length, length)."""
        graph = self.graph
        length = self.axis_size(ids, 1, "causal/length")
        scalar = graph.add("Squeeze", [length], "causal/count")
        zero, one = (graph.constant(f"number_{n}", np.array(n, dtype=np.int64)) for n in (0, 1))

        places = graph.add("Range", [zero, scalar, one], "causal/places")
        # (length, 1) against (length): key ≤ query.
        queries = graph.add("Unsqueeze", [places, graph.integers(1)], "causal/queries")
        return graph.add("LessOrEqual", [places, queries], "causal/may_attend")

    def project(self, x: str, name: str, part: str) -> str:
        """Queries, keys or values of ``x``, split into heads: (batch, head, token, feature)."""
        config, graph = self.config, self.graph
        widths = {"query": config.key_size, "key": config.key_size, "value": config.value_size}

        # `w_qkv` stacks the rows of all heads' queries, then keys, then values.
        # Queries and keys have the same width, so the values begin after two such blocks.
        first = list(widths).index(part) * config.heads * config.key_size
        rows = slice(first, first + config.heads * widths[part])

        # PyTorch stores (output, input) and MatMul computes x W, hence the transposed copy.
        weight = graph.constant(f"{name}.w_{part}", self.tensors[f"{name}.w_qkv"][rows].T)
        x = graph.add("MatMul", [x, weight], f"{name}/{part}_product")
        if f"{name}.b_qkv" in self.tensors:
            bias = graph.constant(f"{name}.b_{part}", self.tensors[f"{name}.b_qkv"][rows])
            x = graph.add("Add", [x, bias], f"{name}/{part}_sum")

        # A 0 in an ONNX shape keeps the size of that axis. (batch, token, head, size)
        shape = graph.integers(0, 0, config.heads, widths[part])
        x = graph.add("Reshape", [x, shape], f"{name}/{part}_by_head")
        return graph.add("Transpose", [x], f"{name}/{part}", {"perm": [0, 2, 1, 3]})

    def attend(self, name: str, query: str, key: str, value: str, may_attend: str | None) -> str:
        """softmax(Q Kᵀ / √dₖ) V of every head, concatenated and projected."""
        config, graph = self.config, self.graph

        # (batch, head, feature, key)
        turned = graph.add("Transpose", [key], f"{name}/key_turned", {"perm": [0, 1, 3, 2]})
        scores = graph.add("MatMul", [query, turned], f"{name}/products")
        root = np.array(1.0 / math.sqrt(config.key_size), dtype=np.float32)
        scores = graph.add("Mul", [scores, graph.constant("one_by_root", root)], f"{name}/scores")
        if may_attend is not None:
            # Finite, because a row that is masked everywhere would become NaN with -inf.
            lowest = graph.constant("lowest", np.array(np.finfo(np.float32).min))
            scores = graph.add("Where", [may_attend, scores, lowest], f"{name}/masked")

        weights = graph.add("Softmax", [scores], f"{name}/weights", {"axis": -1})
        heads = graph.add("MatMul", [weights, value], f"{name}/heads")

        # (batch, token, head, feature), so that the heads of a token lie side by side.
        heads = graph.add("Transpose", [heads], f"{name}/heads_in_row", {"perm": [0, 2, 1, 3]})
        shape = graph.integers(0, 0, config.heads * config.value_size)  # (batch, token, all heads)
        merged = graph.add("Reshape", [heads, shape], f"{name}/merged")
        return self._linear(merged, f"{name}.w_o", f"{name}.b_o", f"{name}/output")

    def ssru(self, x: str, name: str, past: str | None) -> tuple[str, str]:
        """ReLU of the cells cₜ = fₜ ⊙ cₜ₋₁ + (1 − fₜ) ⊙ xₜ W after each token, and the last cell.

        The cell begins with ``past``, (batch, d_model), where ``x`` is one token; with zeros
        without it.
        """
        graph = self.graph
        before = self._linear(
            x, f"{name}.gate.weight", f"{name}.gate.bias", f"{name}/preactivation"
        )
        gates = graph.add("Sigmoid", [before], f"{name}/gate")
        candidates = self._linear(x, f"{name}.candidate.weight", "", f"{name}/candidate")

        if past is not None:
            # (batch, 1, d_model), as the one token is
            old = graph.add("Unsqueeze", [past, graph.integers(1)], f"{name}/past")
            cells = _mean(graph, old, gates, candidates, f"{name}/cell")
            last = graph.add("Squeeze", [cells, graph.integers(1)], f"{name}/last")
            return graph.add("Relu", [cells], f"{name}/output"), last

        # Scan runs over the first axis: (token, batch, d_model). The reference interpreter has no
        # other, and a closed formula would divide by products of gates, which vanish.
        turned = [
            graph.add("Transpose", [each], f"{each}_by_token", {"perm": [1, 0, 2]})
            for each in (gates, candidates)
        ]
        batch = self.axis_size(x, 0, f"{name}/batch")
        width = graph.integers(self.config.d_model)
        shape = graph.add("Concat", [batch, width], f"{name}/start_shape", {"axis": 0})
        start = graph.add("ConstantOfShape", [shape], f"{name}/start")  # float32 zeros
        body = _recurrence(graph.beside(), self.config.d_model)
        last, cells = graph.scan(start, turned, body, f"{name}/recurrence")
        cells = graph.add("Transpose", [cells], f"{name}/cell", {"perm": [1, 0, 2]})
        return graph.add("Relu", [cells], f"{name}/output"), last

    def feed_forward(self, x: str, name: str) -> str:
        """Two linear layers with the activation between them."""
        name = f"{name}.feed_forward"
        hidden = self._linear(x, f"{name}.inner.weight", f"{name}.inner.bias", f"{name}/inner")
        hidden = self._activate(hidden, f"{name}/activation")
        return self._linear(hidden, f"{name}.outer.weight", f"{name}.outer.bias", f"{name}/outer")

    def enter(self, x: str, name: str) -> str:
        """The input of a sublayer: normalized first with pre-norm."""
        return self.norm(x, f"{name}.norm") if self.config.norm == "pre" else x

    def leave(self, x: str, output: str, name: str) -> str:
        """The residual sum, normalized with post-norm."""
        total = self.graph.add("Add", [x, output], f"{name}/residual")
        return total if self.config.norm == "pre" else self.norm(total, f"{name}.norm")

    def norm(self, x: str, name: str) -> str:
        """LayerNorm with its gain and bias."""
        stored = [self._stored(f"{name}.gain"), self._stored(f"{name}.bias")]
        about = {"axis": -1, "epsilon": self.config.norm_eps}
        return self.graph.add("LayerNormalization", [x, *stored], f"{name}/normalized", about)

    def logits(self, x: str) -> str:
        """The output layer: one logit for each token of the target vocabulary."""
        # A tied output uses the stored embedding, transposed by a node, so that it is stored once.
        tied = self.config.tie_output
        weight = self._stored("target_embedding.weight" if tied else "output_weight")
        turned = self.graph.add("Transpose", [weight], "output/turned", {"perm": [1, 0]})
        x = self.graph.add("MatMul", [x, turned], "output/products")
        if not self.config.output_bias:
            return x
        return self.graph.add("Add", [x, self._stored("output_bias")], "output/sum")

    def _stored(self, name: str) -> str:
        return self.graph.constant(name, self.tensors[name])

    def _linear(self, x: str, weight: str, bias: str, name: str) -> str:
        # MatMul computes x W, PyTorch stores Wᵀ.
        stored = self.graph.constant(weight, self.tensors[weight].T)
        x = self.graph.add("MatMul", [x, stored], f"{name}_product")
        if bias not in self.tensors:
            return x
        return self.graph.add("Add", [x, self._stored(bias)], f"{name}_sum")

    def _activate(self, x: str, name: str) -> str:
        graph = self.graph
        match self.config.activation:
            case "relu":
                return graph.add("Relu", [x], name)
            case "swish":
                return graph.add("Mul", [x, graph.add("Sigmoid", [x], f"{name}/gate")], name)
            case "gelu":  # x · (1 + erf(x / √2)) / 2
                root, one, half = (
                    graph.constant(f"number_{title}", np.array(value, dtype=np.float32))
                    for title, value in (("root_half", math.sqrt(0.5)), ("one", 1), ("half", 0.5))
                )
                error = graph.add("Erf", [graph.add("Mul", [x, root], f"{name}/z")], f"{name}/erf")
                gate = graph.add("Add", [error, one], f"{name}/gate")
                return graph.add("Mul", [graph.add("Mul", [x, gate], f"{name}/twice"), half], name)
            case other:
                raise AssertionError(f"the table of capabilities refuses {other}")


def encoder_graph(onnx: Any, config: TransformerConfig, tensors: Mapping[str, Tensor]) -> Graph:
    """The encoder: from ids and their mask to the hidden states that the decoder attends to."""
    graph = Graph(onnx)
    blocks = Blocks(graph, config, tensors)
    ids = graph.input("input_ids", ["batch", "source"], ids=True)
    mask = blocks.mask(graph.input("attention_mask", ["batch", "source"], ids=True))
    # A graph is a file of its own: tensors that two graphs need are stored in both.
    side = "target" if config.share_embeddings else "source"  # a shared one is stored once
    x = blocks.embed(side, ids, None)

    for index in range(config.encoder_layers):
        name = f"encoder.layers.{index}"
        # The encoder runs once for a sentence; its keys and values are not kept.
        x = _attend_self(blocks, name, x, mask)[0]
        x = _feed(blocks, name, x)

    if config.norm == "pre":
        x = blocks.norm(x, "encoder.last_norm")
    graph.output(x, "last_hidden_state", ["batch", "source", config.d_model])
    return graph


def decoder_graph(
    onnx: Any, config: TransformerConfig, tensors: Mapping[str, Tensor], *, has_past: bool
) -> Graph:
    """The decoder: from a prefix to the logits after each token, and the next step's cache.

    With a past the prefix is one token, and the keys and values of all earlier tokens are inputs;
    of an SSRU its cell after them, and how many they are.
    """
    graph = Graph(onnx)
    blocks = Blocks(graph, config, tensors)
    length: str | int = 1 if has_past else "length"
    ids = graph.input("input_ids", ["batch", length], ids=True)
    mask = blocks.mask(graph.input("encoder_attention_mask", ["batch", "source"], ids=True))

    if has_past:
        past = {name: graph.input(name, shape) for name, shape in past_shapes(config)}
        if config.decoder == "ssru":
            # A cell has the same size after any number of tokens, so the number comes with it.
            start = graph.input("past_key_values.length", [1], ids=True)
        else:
            # The cache is (batch, head, past, size): its length is the position of the new token.
            start = blocks.axis_size("past_key_values.0.decoder.key", 2, "past/length")
        # The keys and values of the source come from the cache, so the memory is no input.
        causal, memory = None, ""  # a single token attends to all of the past
    else:
        past, start = {}, None
        causal = blocks.causal_mask(ids) if config.decoder == "self-attention" else None
        memory = graph.input("encoder_hidden_states", ["batch", "source", config.d_model])

    x = blocks.embed("target", ids, start)
    if config.decoder == "ssru":
        graph.output(blocks.places[1], "present.length", [1], ids=True)
    for index in range(config.decoder_layers):
        x = _decoder_layer(blocks, index, x, (memory, mask, causal), past)

    if config.norm == "pre":
        x = blocks.norm(x, "decoder.last_norm")
    vocabulary_size = tensors["target_embedding.weight"].shape[0]
    graph.output(blocks.logits(x), "logits", ["batch", length, vocabulary_size])
    return graph


def past_shapes(config: TransformerConfig) -> Iterator[tuple[str, list[str | int]]]:
    """The names and shapes of the cache that a step reads, layer by layer."""
    for index in range(config.decoder_layers):
        if config.decoder == "ssru":
            yield f"past_key_values.{index}.decoder.cell", ["batch", config.d_model]
        own = [] if config.decoder == "ssru" else [("decoder", "past")]
        for part, length in (*own, ("encoder", "source")):
            for kind, width in (("key", config.key_size), ("value", config.value_size)):
                name = f"past_key_values.{index}.{part}.{kind}"
                yield name, ["batch", config.heads, length, width]


def _decoder_layer(
    blocks: Blocks,
    index: int,
    x: str,
    looks_at: tuple[str, str, str | None],
    past: Mapping[str, str],
) -> str:
    memory, mask, causal = looks_at
    name = f"decoder.layers.{index}"
    # Returned with the logits, as the cache that the next step reads.
    match blocks.config.decoder:
        case "self-attention":
            x, key, value = _attend_self(blocks, name, x, causal, index if past else None)
            _give_back(blocks, index, "decoder", (key, value), "past + 1" if past else "length")
        case "ssru":
            own = f"{name}.ssru"
            before = f"past_key_values.{index}.decoder.cell" if past else None
            output, cell = blocks.ssru(blocks.enter(x, f"{own}_norm"), own, before)
            x = blocks.leave(x, output, f"{own}_norm")
            width = blocks.config.d_model
            blocks.graph.output(cell, f"present.{index}.decoder.cell", ["batch", width])
        case other:
            raise AssertionError(f"the table of capabilities refuses {other}")

    cross = f"{name}.cross_attention"
    query = blocks.project(blocks.enter(x, f"{cross}_norm"), cross, "query")

    # The keys and values of the source never change: only the first decoder
    # computes and returns them.
    if past:
        # Inputs of the graph, named as in Optimum's exports.
        key, value = (f"past_key_values.{index}.encoder.{kind}" for kind in ("key", "value"))
    else:
        key, value = (blocks.project(memory, cross, kind) for kind in ("key", "value"))
        _give_back(blocks, index, "encoder", (key, value), "source")
    x = blocks.leave(x, blocks.attend(cross, query, key, value, mask), f"{cross}_norm")
    return _feed(blocks, name, x)


def _mean(graph: Graph, cell: str, gates: str, candidates: str, name: str) -> str:
    """f ⊙ c + (1 − f) ⊙ x, computed as x + f ⊙ (c − x)."""
    difference = graph.add("Sub", [cell, candidates], f"{name}_difference")
    return graph.add(
        "Add", [candidates, graph.add("Mul", [gates, difference], f"{name}_kept")], f"{name}_mean"
    )


def _recurrence(body: Graph, width: int) -> Graph:
    """One token of an SSRU, as the body of a Scan: the cell after it, twice."""
    names = ("cell_before", "token_gate", "token_candidate")
    cell, gate, candidate = (body.input(each, ["batch", width]) for each in names)
    mean = _mean(body, cell, gate, candidate, "cell")
    for name in ("cell_after", "cell_shown"):
        body.output(mean, name, ["batch", width])
    return body


def _attend_self(
    blocks: Blocks, name: str, x: str, mask: str | None, past_of: int | None = None
) -> tuple[str, str, str]:
    """Self-attention with norm and residual: the hidden states, and all keys and values so far."""
    own = f"{name}.self_attention"
    rows = blocks.enter(x, f"{own}_norm")
    query, key, value = (blocks.project(rows, own, part) for part in ("query", "key", "value"))

    # Keys are rotated before they enter the cache, at the position they keep.
    query, key = blocks.turn(query), blocks.turn(key)

    if past_of is not None:
        key, value = (
            blocks.graph.add(
                "Concat",
                [f"past_key_values.{past_of}.decoder.{kind}", new],
                f"{own}/all_{kind}s",
                {"axis": 2},
            )
            for kind, new in (("key", key), ("value", value))
        )

    attended = blocks.attend(own, query, key, value, mask)
    return blocks.leave(x, attended, f"{own}_norm"), key, value


def _feed(blocks: Blocks, name: str, x: str) -> str:
    around = f"{name}.feed_forward_norm"
    return blocks.leave(x, blocks.feed_forward(blocks.enter(x, around), name), around)


def _give_back(blocks: Blocks, index: int, part: str, pair: tuple[str, str], length: str) -> None:
    config = blocks.config
    for kind, value, width in zip(
        ("key", "value"), pair, (config.key_size, config.value_size), strict=True
    ):
        name = f"present.{index}.{part}.{kind}"
        # An axis with a name instead of a number may have any size.
        blocks.graph.output(value, name, ["batch", config.heads, length, width])
