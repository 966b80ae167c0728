"""The pieces that every architecture is put together from: attention, feed-forward blocks, vocabulary.

Parameters are counted exactly: matrices, biases and norms, as the architectures' reference
implementations in the transformers library declare them. `architectures` says which model has which.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from tierloom.errors import RequestError
from tierloom.offload.model import INDEXER_KEY_BYTES, Cache, Model, Part, Tensor

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tierloom.offload.fields import Fields

DTYPE_BYTES = {"float32": 4.0, "float16": 2.0, "bfloat16": 2.0, "float8_e4m3fn": 1.0}

TIED = {
    "bert",
    "cohere",
    "cohere2",
    "gemma",
    "gemma3n_text",
    "gemma2",
    "gemma3_text",
    "gemma4_text",
    "gpt2",
    "granitemoehybrid",
    "opt",
}
"""Architectures whose output matrix is the embedding unless their config says otherwise."""


@dataclass(frozen=True, kw_only=True)
class Attention:
    """Attention of one layer, or what stands in its place: parameters, and what it keeps of a sequence.

    `modules` are its matrices as transformers calls them, and their parameters; what else it has is small.
    """

    parameters: int
    caches: tuple[Cache, ...]
    heads: int
    tensors: int = 4
    modules: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Feed:
    """Feed-forward blocks of all layers."""

    parts: tuple[Part, ...]
    width: int
    experts: int = 0
    experts_per_token: int = 0


def element_bytes(fields: Fields) -> float:
    """Bytes of an element as the config has it stored.

    Raises:
        RequestError: The type is not known.
    """
    name = fields.word("torch_dtype", "") or fields.word("dtype", "float16")
    if name not in DTYPE_BYTES:
        message = f"{fields.file}: `torch_dtype` {name!r} is not known\nhint: known are {', '.join(DTYPE_BYTES)}"
        raise RequestError(message)
    return DTYPE_BYTES[name]


def named(numbers: Iterable[int], modules: Mapping[str, int]) -> tuple[Tensor, ...]:
    """Matrices of layers by their names; what they take is said later."""
    return tuple(Tensor(f"layers.{n}.{name}", n, size, 0.0) for n in numbers for name, size in modules.items())


def layers_of(fields: Fields) -> int:
    """Layers of the decoder or encoder."""
    blocks = fields.words("layers_block_type")
    return len(blocks) if blocks else fields.count("num_hidden_layers", "n_layer")


def grouped(
    fields: Fields, *, bias: bool = False, head_norms: bool = False, gate: bool = False, more: int = 0
) -> Attention:
    """Multi-head and grouped-query attention: every query head has its scores, groups share keys and values.

    Args:
        fields: The config.
        bias: Queries, keys and values have biases.
        head_norms: Queries and keys are normed head by head.
        gate: The queries' matrix also makes a gate of the output.
        more: Other parameters of the layer's attention.
    """
    hidden, heads = fields.count("hidden_size"), fields.count("num_attention_heads")
    kv_heads = fields.count_or(heads, "num_key_value_heads")
    width = fields.count_or(hidden // heads, "head_dim", "attention_head_dim")
    biases = width * (heads + 2 * kv_heads) if bias else 0
    norms = 2 * width if head_norms else 0
    modules = heads_modules(
        hidden, (2 if gate else 1) * heads * width, kv_heads * width, kv_heads * width, heads * width
    )
    return Attention(
        parameters=sum(modules.values()) + biases + norms + more,
        caches=(kept(fields, 2 * kv_heads * width, 4 * heads * width),),
        heads=heads,
        modules=modules,
    )


def heads_modules(hidden: int, query: int, key: int, value: int, output: int) -> dict[str, int]:
    """The four matrices of attention by heads, by the widths that they lead to or from."""
    widths = {"q_proj": query, "k_proj": key, "v_proj": value, "o_proj": output}
    return {f"self_attn.{name}": hidden * width for name, width in widths.items() if width}


def kept(fields: Fields, elements: int, score_flop: int) -> Cache:
    """All positions, in the bits of an activation."""
    return Cache(elements=elements, element_bytes=element_bytes(fields), score_flop=float(score_flop))


def latent(fields: Fields) -> Attention:
    """Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434): one compressed vector a token is cached.

    Scores are counted as decoding computes them, with the up-projections absorbed into the queries.
    """
    hidden, heads = fields.count("hidden_size"), fields.count("num_attention_heads")
    latent, rope = fields.count("kv_lora_rank"), fields.count("qk_rope_head_dim")
    plain, value = fields.count("qk_nope_head_dim"), fields.count("v_head_dim")
    rank = fields.count_or(0, "q_lora_rank")
    fields.passed("num_key_value_heads")
    fields.passed("head_dim", "qk_head_dim")
    wide = heads * (plain + rope)
    queries = {"q_a_proj": hidden * rank, "q_b_proj": rank * wide} if rank else {"q_proj": hidden * wide}
    keys = {"kv_a_proj_with_mqa": hidden * (latent + rope), "kv_b_proj": latent * heads * (plain + value)}
    matrices = {**queries, **keys, "o_proj": heads * value * hidden}
    return Attention(
        parameters=sum(matrices.values()) + rank + latent,
        modules={f"self_attn.{name}": size for name, size in matrices.items()},
        caches=(kept(fields, latent + rope, 2 * heads * (2 * latent + rope)),),
        heads=heads,
        tensors=5,
    )


def indexed(fields: Fields, attention: Attention) -> Attention:
    """Sparse attention (DeepSeek-V3.2-Exp, 2025): small keys of all positions choose those that are attended to."""
    hidden, rank = fields.count("hidden_size"), fields.count("q_lora_rank")
    heads, width = fields.count("index_n_heads"), fields.count("index_head_dim")
    matrices = {"self_attn.indexer.wq_b": rank * heads * width, "self_attn.indexer.wk": hidden * width}
    more = sum(matrices.values()) + 2 * width + hidden * heads
    keys = Cache(elements=width, element_bytes=INDEXER_KEY_BYTES, score_flop=2.0 * heads * width)
    chosen = (replace(cache, looks=fields.count("index_topk")) for cache in attention.caches)
    modules = {**attention.modules, **matrices}
    return replace(attention, parameters=attention.parameters + more, caches=(*chosen, keys), modules=modules)


def windowed(attention: Attention, window: int) -> Attention:
    """The same attention over the newest `window` positions; 0 is all of them."""
    return replace(attention, caches=tuple(replace(cache, window=window) for cache in attention.caches))


Layers = Sequence[tuple[Sequence[int], Attention]]
"""Which layers have which attention."""


def either(layers: int, full: Iterable[int], attention: Attention, other: Attention) -> Layers:
    """The named layers have one attention, all others the other."""
    first = set(full)
    return [
        (sorted(first), attention),
        ([number for number in range(layers) if number not in first], other),
    ]


def listed(fields: Fields, kind: str) -> list[int]:
    """Layers that ``layer_types`` lists as of a kind."""
    return [number for number, each in enumerate(fields.words("layer_types")) if each == kind]


def by_window(fields: Fields, attention: Attention, every: int = 0) -> Layers:
    """Layers that look at everything and layers with a window, as the config has them.

    Args:
        fields: The config.
        attention: Attention of each layer.
        every: Of so many layers one looks at everything, where the config does not list them; 0 is none.
    """
    layers, window = layers_of(fields), fields.count_or(0, "sliding_window")
    whole, every = fields.count_or(layers, "max_window_layers"), fields.count_or(every, "sliding_window_pattern")
    longest = fields.count_or(0, "max_position_embeddings")
    reaches_all = 0 < longest <= window
    if not window or reaches_all or not fields.flag("use_sliding_window", default=True):
        return ((range(layers), attention),)
    if fields.words("layer_types"):
        full: Iterable[int] = listed(fields, "full_attention")
    elif "use_sliding_window" in fields.config:
        full = range(min(whole, layers))
    else:
        full = range(every - 1, layers, every) if every else ()
    return either(layers, full, attention, windowed(attention, window))


GATED = ("gate_proj", "up_proj", "down_proj")
"""The three matrices of a gated feed-forward block."""


def dense_feed(
    fields: Fields,
    layers: int | Sequence[int],
    matrices: int,
    inner: str,
    *,
    bias: bool = False,
    block: str = "mlp",
) -> Feed:
    """The same block in every layer, of two or three matrices."""
    numbers = range(layers) if isinstance(layers, int) else layers
    hidden, width = fields.count("hidden_size", "n_embd"), fields.count(inner, "intermediate_size")
    modules = {f"{block}.{name}": hidden * width for name in GATED[-matrices:]}
    per_layer = sum(modules.values()) + (hidden + width if bias else 0)
    part = Part(
        name="mlp",
        parameters=len(numbers) * per_layer,
        bytes=0.0,
        layers=len(numbers),
        tensors=matrices,
        numbers=tuple(numbers),
        named=named(numbers, modules),
    )
    return Feed(parts=(part,), width=width)


def routed_feed(
    fields: Fields,
    layers: int | Sequence[int],
    inner: str,
    experts: int,
    *,
    biases: bool = False,
    block: str = "mlp.experts.0",
    names: Sequence[str] = GATED,
) -> Feed:
    """Experts of three matrices each, and the router that chooses among them; a matrix stands for those of all experts.

    Args:
        fields: The config.
        layers: How many layers have them, the first, or which.
        inner: Field of their inner width.
        experts: How many a layer has.
        biases: Matrices and router have biases.
        block: What the first expert of a layer is called.
        names: What its matrices are called.
    """
    numbers = range(layers) if isinstance(layers, int) else layers
    hidden, width = fields.count("hidden_size"), fields.count(inner)
    per_expert = 3 * hidden * width + (2 * width + hidden if biases else 0)
    routed = Part(
        name="experts",
        parameters=len(numbers) * experts * per_expert,
        bytes=0.0,
        layers=len(numbers),
        tensors=experts,
        active="routed",
        numbers=tuple(numbers),
        named=named(numbers, {f"{block}.{name}": experts * hidden * width for name in names}),
    )
    router = len(numbers) * (hidden + (1 if biases else 0)) * experts
    part = Part(name="mlp", parameters=router, bytes=0.0, layers=max(1, len(numbers)), tensors=1)
    return Feed(parts=(part, routed), width=width, experts=experts, experts_per_token=per_token(fields))


def with_matrices(routed: Feed, more: int, layers: int, matrices: tuple[Tensor, ...] = ()) -> Feed:
    """Routed experts, with matrices and other parameters that every token meets beside them."""
    router, experts = routed.parts
    parameters = router.parameters + more + sum(each.parameters for each in matrices)
    part = replace(router, parameters=parameters, layers=layers, tensors=3, named=matrices)
    return replace(routed, parts=(part, experts))


def per_token(fields: Fields) -> int:
    """Experts that a token meets."""
    return fields.count("num_experts_per_tok", "experts_per_token", "top_k_experts", "moe_k")


def assemble(
    fields: Fields,
    name: str,
    attention: Attention | Layers,
    feed: Feed,
    *,
    norms: int,
    outer: int,
    draft: Part | None = None,
) -> Model:
    """Puts a model together.

    Args:
        fields: Its config.
        name: Short name.
        attention: Attention of each layer, or which layers have which.
        feed: Feed-forward of all layers.
        norms: Parameters of the norms of one layer.
        outer: Parameters outside the layers beside the vocabulary: positions, last norm.
        draft: Layers that predict several tokens at once.
    """
    layers, hidden = layers_of(fields), fields.count("hidden_size", "n_embd")
    kinds = [(range(layers), attention)] if isinstance(attention, Attention) else attention
    mixed = [(numbers, each) for numbers, each in kinds if numbers]
    mixing = sorted(number for numbers, _ in mixed for number in numbers)
    size = element_bytes(fields)
    words = fields.count("vocab_size") * hidden
    tied = fields.flag("tie_word_embeddings", default=fields.word("model_type", "") in TIED)
    parts = (
        Part(
            name="attention",
            parameters=sum(len(numbers) * each.parameters for numbers, each in mixed) + layers * norms,
            bytes=0.0,
            layers=len(mixing),
            tensors=max(each.tensors for _, each in mixed),
            numbers=tuple(mixing),
            named=tuple(tensor for numbers, each in mixed for tensor in named(numbers, each.modules)),
        ),
        *feed.parts,
        Part(name="head", parameters=words + hidden, bytes=0.0, layers=1, tensors=1),
        Part(
            name="embedding",
            parameters=outer - hidden + (0 if tied else words),
            bytes=0.0,
            layers=1,
            tensors=1,
            active="rows",
        ),
    )
    return Model(
        name=name,
        family=fields.word("model_type", ""),
        layers=layers,
        hidden=hidden,
        heads=max(each.heads for _, each in mixed),
        ffn=feed.width,
        parts=tuple(part for part in parts if part.parameters > 0),
        caches=_together(mixed),
        element_bytes=size,
        experts=feed.experts,
        experts_per_token=feed.experts_per_token,
        max_positions=fields.count_or(0, "max_position_embeddings", "n_positions"),
        draft=draft,
    ).with_weight_bits(8.0 * size)


def _together(mixed: Layers) -> tuple[Cache, ...]:
    """The caches of all layers, those of a kind added up."""
    return tuple(
        replace(cache, elements=len(numbers) * cache.elements, score_flop=len(numbers) * cache.score_flop)
        for numbers, each in mixed
        for cache in each.caches
    )


def drafting(fields: Fields, layer: int, count: int) -> Part | None:
    """Layers that predict several tokens at once (DeepSeek-V3, arXiv 2412.19437, section 2.2).

    Each has a layer like the model's last, a matrix that joins two hidden states, and three norms.

    Args:
        fields: The config.
        layer: Parameters of one layer of the model.
        count: How many there are.
    """
    hidden = fields.count("hidden_size")
    parameters = count * (layer + 2 * hidden * hidden + 3 * hidden)
    return Part(name="draft", parameters=parameters, bytes=0.0, layers=count, tensors=5) if count else None


def with_output_bias(attention: Attention, hidden: int) -> Attention:
    """The same with a bias of the output matrix."""
    return replace(attention, parameters=attention.parameters + hidden)


def with_caches(model: Model, mixed: Layers) -> Model:
    """The same model with the caches of other layers than all."""
    return replace(model, caches=_together([(numbers, each) for numbers, each in mixed if numbers]))


def with_tables(model: Model, table: int, met: int) -> Model:
    """The same with another table that is looked up by rows, and more that every token meets, outside the layers."""
    size, head = model.element_bytes, next(part for part in model.parts if part.name == "head")
    wider = replace(head, parameters=head.parameters + met, bytes=head.bytes + met * size)
    rows = Part(name="embedding", parameters=table, bytes=table * size, layers=1, tensors=1, active="rows")
    parts = [part for part in model.parts if part is not head]
    return replace(model, parts=(*parts, wider, rows))
