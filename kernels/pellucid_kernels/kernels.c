/* Encoder-decoder Transformers in 8 bits: a whole search in one call.
 *
 * A product is of activations of 7 bits, 0 to 127, and weights of 8 bits, -127 to 127. Its sums are
 * exact in 32 bits on every processor. Every number of floating point is computed in one order, with
 * eight partial sums and without fused multiplication, so that all processors give the same bits as
 * the numpy functions of pellucid/backends/kernels/equation.py. Compile with -ffp-contract=off and never
 * with -ffast-math.
 *
 * The file includes itself once for each set of instructions: the part between PK_LEAVES and its end
 * holds all loops over numbers, the rest chooses among them when a model is opened.
 *
 * No function keeps anything between two calls but the model, which none of them changes: several
 * threads may search with one model.
 */

#ifndef PK_LEAVES

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif
#if defined(__aarch64__)
#include <arm_neon.h>
#if defined(__linux__)
#include <sys/auxv.h>
#endif
#endif

#define PK_API __attribute__((visibility("default")))
#define INLINE static inline __attribute__((always_inline))

/* Vectors are passed to functions that are inlined alone. */
#pragma GCC diagnostic ignored "-Wpsabi"

enum { PK_VERSION = 4 };
enum { OK = 0, BAD_SIZES = 1, NO_MEMORY = 2, BAD_REQUEST = 3, NOT_FINITE = 4 };

enum {
    PANEL = 16,          /* outputs of a panel of a packed matrix */
    GROUP = 8,           /* inputs that one step of a product reads */
    UNIT = 4,            /* inputs that follow each other in a group, which has two units */
    LANES = PANEL * UNIT / 2, /* of a unit: two weights of an output, whose products are added in 16 bits */
    MOST_TRIED = 512,    /* units that are tried as the second of a group */
    TILE = 4,            /* rows of a tile: its sums stay in registers */
    ROWS_AT_ONCE = 64,   /* rows of a product that stay in the second cache */
    WORDS_AT_ONCE = 1024, /* words whose logits are computed before they are searched */
    AHEAD = 8192,         /* bytes of weights that are asked for early */
    LINE = 64,            /* bytes of a line of the cache, at which every array of a block begins */
    BLOCK = 64,           /* words that are searched only if their largest logit is among the best */
    ONE_BY_ONE = 8,       /* panels that are computed one after another, the likeliest first */
    MOST_HELD = 32        /* guessed words that are compared with all logits at once */
};

enum { MOST_SIZE = 1 << 16, MOST_LAYERS = 1000, MOST_WORDS = 1 << 20, MOST_POSITIONS = 1 << 20 };
enum { MOST_SENTENCES = 1 << 16, MOST_BEAM = 64 };

enum { NO_POSITIONS = 0, ADDED = 1, ROTARY = 2 };
enum { RELU = 0, SWISH = 1 };
enum { SELF_ATTENTION = 0, SSRU = 1 };
enum { BOUND_AT_LIMIT = 0, BOUND_AT_NEXT = 1, BOUND_NOW = 2 };

/* The sizes and choices of a model; Python's ctypes fills it field by field. target_is_source: the
 * target has the embeddings of the source; output_is_target: the output matrix is that of the target's
 * embeddings; start_is_zero: the decoder reads a vector of zeros in place of BOS. */
typedef struct {
    int32_t d_model, d_ff, heads, key_size, value_size;
    int32_t encoder_layers, decoder_layers, source_words, target_words;
    int32_t position_kind, position_count; /* rows of the table of positions */
    int32_t activation, decoder, pre_norm;
    int32_t target_is_source, output_is_target, start_is_zero;
    int32_t axes; /* of the shortlist, which is the end of a block; 0 without one */
    float norm_eps, embedding_scale;
} pk_sizes;

/* A matrix (outputs, inputs) with a scale for each output, or numbers alone (rows is NULL). */
typedef struct {
    const int8_t *rows;
    const float *scales; /* of a matrix; else the numbers themselves */
    const float *bias;   /* of a matrix, or NULL */
    int64_t outputs, inputs;
} pk_tensor;

typedef struct {
    int32_t sentences, beam, kept, n_best;
    int32_t pad, bos, eos;
    int32_t bound;               /* which penalty bounds a live hypothesis */
    int32_t free_stop;           /* whether a stop at the limit has log p = 0 */
    int32_t most;                /* the largest limit: results have room for most + 1 tokens */
    double enough;               /* a sentence ends after so many finished hypotheses */
    const int32_t *source;       /* all sources with their stops, one after another */
    const int32_t *source_sizes; /* tokens of each, with the stop */
    const int32_t *limits;       /* the most tokens of each translation, without the stop */
    const float *penalties;      /* by length, most + 3 of them */
    const int32_t *forced;       /* (sentence, most), or NULL: tokens that must be generated */
} pk_request;

typedef struct {
    int32_t *ids;     /* (sentence, n_best, most + 1), with the stop */
    float *log_probs; /* the same */
    int32_t *sizes;   /* (sentence, n_best): tokens with the stop; 0 where there is no hypothesis */
    /* where they are asked for, else NULL: */
    float *states;   /* of a greedy search (sentence, most + 1, d_model): what the output reads for each token */
    int32_t *counts; /* words that were guessed right or set, wrong ones, panels computed for both */
} pk_result;

/* A matrix as products read it: for each panel, for each group, 16 outputs of the 4 inputs of a unit, and
 * the same outputs of another unit. A panel has the groups first in which sums of four products fit 16
 * bits, as such a group takes three instructions where another takes four; so units that fit each other
 * make a group, wherever they come from. */
typedef struct {
    int outputs, inputs, panels, groups;
    int8_t *packed;
    uint16_t *order; /* (panel, group, 2): the units as they lie in packed */
    int32_t *safe;   /* by panel: how many groups of the first kind */
    float *scales, *bias, *sums; /* padded to whole panels; sums of the weights of each output */
} Matrix;

typedef struct {
    float *gain, *bias;
} Norm;

typedef struct {
    Matrix qkv, out, query, memory, cross_out, inner, outer; /* qkv: W and W_f of an SSRU */
    Norm self_norm, cross_norm, feed_norm;
} Layer;

/* What a guess of all logits reads: a state on its axes, and each word on these. */
typedef struct {
    Matrix turn;  /* (axes, d_model) */
    Matrix first; /* (target_words, axes), with a bias for what the axes leave out */
} Shortlist;

/* Rows of a product in 7 bits: x = low + step q. */
typedef struct {
    uint8_t *q;
    float *low, *step;
    int size; /* bytes of a row: inputs, padded to whole groups */
} Rows;

/* What a query attends to: numbers from one row to the next and from one head to the next. */
typedef struct {
    const float *keys, *values;
    size_t key_row, value_row, key_head, value_head;
    const int32_t *slots; /* the row of each token, or NULL: in order */
    int count;
} Seen;

typedef struct {
    const char *name;
    void (*product)(const Rows *, int, const Matrix *, int, int, void *, int, int);
    void (*quantize)(const float *, int, int, Rows *);
    void (*normalize)(const float *, int, int, const Norm *, float, float *);
    void (*add)(float *, const float *, size_t);
    void (*activate)(float *, size_t, int);
    void (*rotate)(float *, int, int, const float *);
    void (*attend)(const float *, const Seen *, int, int, int, float *, float *);
    void (*recur)(const float *, float *, int, float *);
    void (*look_up)(const Matrix *, int, float, const float *, float *);
    float (*largest_by_block)(const float *, int, float *);
    float (*sum_of_exps)(const float *, int, float);
    void (*guess)(const Rows *, const Matrix *, float *);
    int (*largest_index)(const float *, int);
    void (*some_panels)(const Rows *, const Matrix *, const int *, int, float *);
} Leaves;

typedef struct {
    pk_sizes sizes;
    const Leaves *leaves;
    Matrix source, target, output;
    float *positions;
    Layer *encoder, *decoder;
    Norm encoder_norm, decoder_norm;
    Shortlist shortlist;
} pk_model;

/* ---- memory ---- */

static void *zeroed(size_t count, size_t size) {
    if (size != 0 && count > SIZE_MAX / 2 / size) return NULL;
    return calloc(count ? count : 1, size);
}

/* Room for count items, at least doubled; the items before stay. */
static int grow(void **memory, size_t *room, size_t count, size_t size) {
    if (count <= *room) return 1;
    size_t more = *room * 2 > count ? *room * 2 : count;
    if (more > SIZE_MAX / 2 / size) return 0;
    void *larger = realloc(*memory, more * size);
    if (!larger) return 0;
    *memory = larger, *room = more;
    return 1;
}

typedef struct {
    void *blocks[64];
    int count;
    int failed;
} Pool;

/* Zeroed memory that free_pool frees; NULL, and the pool has failed, where there is none. */
static void *take(Pool *pool, size_t count, size_t size) {
    void *block = pool->count < 64 ? zeroed(count, size) : NULL;
    if (!block) pool->failed = 1;
    else pool->blocks[pool->count++] = block;
    return block;
}

static void free_pool(Pool *pool) {
    for (int i = 0; i < pool->count; i++) free(pool->blocks[i]);
}

/* ---- the loops, once for each set of instructions ---- */

typedef float F8 __attribute__((vector_size(32)));
typedef int32_t I8 __attribute__((vector_size(32)));

#define PK_JOIN2(a, b) a##_##b
#define PK_JOIN(a, b) PK_JOIN2(a, b)
#define L(name) PK_JOIN(name, PK_LEAVES)

#define PK_PLAIN 0
#define PK_AVX2 1
#define PK_VNNI 2
#define PK_VNNI512 3
#define PK_NEON 4

#define PK_LEAVES plain
#define PK_DOT PK_PLAIN
#include "kernels.c"
#undef PK_LEAVES
#undef PK_DOT

/* A compiler is told what a part may use; which part runs is asked of the processor. */
#if defined(__x86_64__)

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2")
#endif
#define PK_LEAVES avx2
#define PK_DOT PK_AVX2
#include "kernels.c"
#undef PK_LEAVES
#undef PK_DOT
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

#if (defined(__clang__) && __clang_major__ >= 12) || (!defined(__clang__) && __GNUC__ >= 11)
#define PK_HAS_VNNI 1

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,avxvnni"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,avxvnni")
#endif
#define PK_LEAVES avxvnni
#define PK_DOT PK_VNNI
#include "kernels.c"
#undef PK_LEAVES
#undef PK_DOT
#if defined(__clang__)
#pragma clang attribute pop
#pragma clang attribute push(__attribute__((target("avx2,avx512f,avx512bw,avx512vl,avx512vnni"))), apply_to = function)
#else
#pragma GCC pop_options
#pragma GCC push_options
#pragma GCC target("avx2,avx512f,avx512bw,avx512vl,avx512vnni")
#endif
#define PK_LEAVES avx512vnni
#define PK_DOT PK_VNNI512
#include "kernels.c"
#undef PK_LEAVES
#undef PK_DOT
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

#endif
#endif

#if defined(__aarch64__)
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("dotprod"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("arch=armv8.2-a+dotprod")
#endif
#define PK_LEAVES neon
#define PK_DOT PK_NEON
#include "kernels.c"
#undef PK_LEAVES
#undef PK_DOT
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif

/* The leaves that this processor has, the fastest first; NULL ends the list. */
static void list_leaves(const Leaves **list) {
    int count = 0;
#if defined(__x86_64__)
#if defined(PK_HAS_VNNI)
    if (__builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vl"))
        list[count++] = &leaves_avx512vnni;
    unsigned a, b, c, d; /* leaf 7, subleaf 1, bit 4 of EAX; subleaf 0 says whether there is one */
    if (__builtin_cpu_supports("avx2") && __get_cpuid_count(7, 0, &a, &b, &c, &d) && a >= 1 &&
        __get_cpuid_count(7, 1, &a, &b, &c, &d) && a >> 4 & 1)
        list[count++] = &leaves_avxvnni;
#endif
    if (__builtin_cpu_supports("avx2")) list[count++] = &leaves_avx2;
#endif
#if defined(__aarch64__)
#if defined(__linux__)
    if (getauxval(AT_HWCAP) & (1 << 20)) list[count++] = &leaves_neon; /* HWCAP_ASIMDDP */
#else
    list[count++] = &leaves_neon;
#endif
#endif
    list[count++] = &leaves_plain;
    list[count] = NULL;
}

static const Leaves *named_leaves(const char *name) {
    const Leaves *list[8];
    list_leaves(list);
    if (!name || !*name) return list[0];
    for (int i = 0; list[i]; i++)
        if (!strcmp(list[i]->name, name)) return list[i];
    return NULL;
}

PK_API int pk_version(void) { return PK_VERSION; }

/* The name of the instructions that this processor has, the fastest first; NULL after the last. */
PK_API const char *pk_instructions(int index) {
    const Leaves *list[8];
    list_leaves(list);
    for (int i = 0; list[i]; i++)
        if (i == index) return list[i]->name;
    return NULL;
}

/* ---- models ---- */

static size_t panel_bytes(const Matrix *m) { return (size_t)m->groups * GROUP * PANEL; }

static size_t unit_count(const Matrix *m) { return (size_t)m->groups * (GROUP / UNIT); }

/* For each lane of a unit the sum of its positive weights, then that of its negative ones, without signs. */
static void measure_lanes(const int8_t *unit, uint8_t sums[2 * LANES]) {
    for (int lane = 0; lane < LANES; lane++) {
        int a = unit[2 * lane], b = unit[2 * lane + 1];
        sums[lane] = (uint8_t)((a > 0 ? a : 0) + (b > 0 ? b : 0));
        sums[LANES + lane] = (uint8_t)((a < 0 ? -a : 0) + (b < 0 ? -b : 0));
    }
}

/* Whether four products of a lane always fit 16 bits: 127 times the sum of the positive weights, and of
 * the negative ones, is at most 32,767. */
static int fit_each_other(const uint8_t a[2 * LANES], const uint8_t b[2 * LANES]) {
    int most = 0;
    for (int i = 0; i < 2 * LANES; i++) most = a[i] + b[i] > most ? a[i] + b[i] : most;
    return most <= 258;
}

/* What units are ordered by: those come first for which it is hardest to find another. */
typedef struct {
    int size, unit;
} Hardness;

static int harder(const void *a, const void *b) {
    const Hardness *x = a, *y = b;
    return x->size != y->size ? y->size - x->size : x->unit - y->unit;
}

typedef struct {
    int8_t *packed;   /* a panel */
    uint8_t *sums;    /* of its lanes */
    Hardness *left;   /* units that are in no group */
    uint16_t *others; /* units that no other fits */
} Spare;

/* Puts the units of a panel in order: groups of two that fit each other, then all others. */
static void pair_units(Matrix *m, int panel, Spare *spare) {
    int8_t *packed = m->packed + (size_t)panel * panel_bytes(m);
    uint16_t *order = m->order + (size_t)panel * unit_count(m);
    int left = (int)unit_count(m), count = 0, others = 0;
    memcpy(spare->packed, packed, panel_bytes(m));
    for (int unit = 0; unit < left; unit++) {
        uint8_t *sums = spare->sums + (size_t)unit * 2 * LANES;
        measure_lanes(packed + (size_t)unit * UNIT * PANEL, sums);
        spare->left[unit] = (Hardness){0, unit};
        for (int i = 0; i < 2 * LANES; i++)
            if (sums[i] > spare->left[unit].size) spare->left[unit].size = sums[i];
    }
    qsort(spare->left, (size_t)left, sizeof(Hardness), harder);

    for (int first = 0; first < left; first++) {
        int unit = spare->left[first].unit, second = first + 1;
        int end = left - second < MOST_TRIED ? left : second + MOST_TRIED;
        while (second < end && !fit_each_other(spare->sums + (size_t)unit * 2 * LANES,
                                               spare->sums + (size_t)spare->left[second].unit * 2 * LANES))
            second++;
        if (second == end) {
            spare->others[others++] = (uint16_t)unit;
            continue;
        }
        order[count++] = (uint16_t)unit, order[count++] = (uint16_t)spare->left[second].unit;
        left--;
        memmove(spare->left + second, spare->left + second + 1, (size_t)(left - second) * sizeof(Hardness));
    }
    m->safe[panel] = count / 2;
    for (int i = 0; i < others; i++) order[count++] = spare->others[i];
    for (int i = 0; i < count; i++)
        memcpy(packed + (size_t)i * UNIT * PANEL, spare->packed + (size_t)order[i] * UNIT * PANEL, UNIT * PANEL);
}

/* Fills a matrix, whose memory is zeroed. */
static int pack(Matrix *m, const pk_tensor *t) {
    Pool pool = {0};
    Spare spare = {take(&pool, panel_bytes(m), 1), take(&pool, unit_count(m), 2 * LANES),
                   take(&pool, unit_count(m), sizeof(Hardness)), take(&pool, unit_count(m), sizeof(uint16_t))};
    if (pool.failed) return free_pool(&pool), NO_MEMORY;
    for (int output = 0; output < m->outputs; output++) {
        int8_t *panel = m->packed + (size_t)(output / PANEL) * panel_bytes(m);
        const int8_t *row = t->rows + (size_t)output * (size_t)m->inputs;
        int32_t sum = 0;
        for (int input = 0; input < m->inputs; input++) {
            if (row[input] == -128) return free_pool(&pool), BAD_SIZES; /* beyond -127 a pair of products overflows */
            panel[(size_t)(input / UNIT) * UNIT * PANEL + (size_t)(output % PANEL) * UNIT + (size_t)(input % UNIT)] = row[input];
            sum += row[input];
        }
        m->scales[output] = t->scales[output];
        m->bias[output] = t->bias ? t->bias[output] : 0.0f;
        m->sums[output] = (float)sum; /* exact: below 2^24 */
    }
    for (int panel = 0; panel < m->panels; panel++) pair_units(m, panel, &spare);
    free_pool(&pool);
    return OK;
}

/* Whether products of a matrix stay within their rows and its panels. */
static int is_in_order(const Matrix *m) {
    for (int panel = 0; panel < m->panels; panel++) {
        const uint16_t *order = m->order + (size_t)panel * unit_count(m);
        if (m->safe[panel] < 0 || m->safe[panel] > m->groups) return 0;
        for (size_t unit = 0; unit < unit_count(m); unit++)
            if (order[unit] >= unit_count(m)) return 0;
    }
    return 1;
}

/* A packed model is one block of memory: one array after another, in an order that follows from the
 * sizes. A walk visits all tensors in that order and points each to its arrays; without a base it
 * counts bytes. On the way it fills one tensor, or checks all. */
typedef struct {
    uint8_t *base;
    uint64_t bytes;
    int count;  /* of tensors so far */
    int filled; /* the number of the tensor to fill, or -1 */
    const pk_tensor *tensor;
    int checks, error;
} Walk;

static void *next_array(Walk *walk, uint64_t count, size_t size) {
    void *array = walk->base ? walk->base + walk->bytes : NULL;
    walk->bytes += (count * size + LINE - 1) / LINE * LINE;
    return array;
}

static void lay_out(Walk *walk, Matrix *m, int outputs, int inputs) {
    m->outputs = outputs, m->inputs = inputs;
    m->panels = (outputs + PANEL - 1) / PANEL;
    m->groups = (inputs + GROUP - 1) / GROUP;
    uint64_t panels = (uint64_t)m->panels, groups = panels * (uint64_t)m->groups;
    m->packed = next_array(walk, groups * GROUP * PANEL, 1);
    m->order = next_array(walk, groups * (GROUP / UNIT), sizeof(uint16_t));
    m->safe = next_array(walk, panels, sizeof(int32_t));
    m->scales = next_array(walk, panels * PANEL, sizeof(float));
    m->bias = next_array(walk, panels * PANEL, sizeof(float));
    m->sums = next_array(walk, panels * PANEL, sizeof(float));
}

static void visit_matrix(Walk *walk, Matrix *m, int outputs, int inputs) {
    lay_out(walk, m, outputs, inputs);
    const pk_tensor *t = walk->count++ == walk->filled ? walk->tensor : NULL;
    if (t && (!t->rows || !t->scales || t->outputs != outputs || t->inputs != inputs)) walk->error = BAD_SIZES;
    else if (t) walk->error = pack(m, t);
    if (walk->checks && !is_in_order(m)) walk->error = BAD_SIZES;
}

static void visit_numbers(Walk *walk, float **numbers, uint64_t count) {
    *numbers = next_array(walk, count, sizeof(float));
    const pk_tensor *t = walk->count++ == walk->filled ? walk->tensor : NULL;
    if (!t) return;
    if (t->rows || !t->scales || t->outputs < 0 || (uint64_t)t->outputs != count) walk->error = BAD_SIZES;
    else memcpy(*numbers, t->scales, (size_t)count * sizeof(float));
}

static void visit_norm(Walk *walk, Norm *norm, int size) {
    visit_numbers(walk, &norm->gain, (uint64_t)size);
    visit_numbers(walk, &norm->bias, (uint64_t)size);
}

static void visit_layer(Walk *walk, const pk_sizes *s, Layer *layer, int is_decoder) {
    int keys = s->heads * s->key_size, values = s->heads * s->value_size;
    if (is_decoder && s->decoder == SSRU) {
        visit_matrix(walk, &layer->qkv, 2 * s->d_model, s->d_model);
    } else {
        visit_matrix(walk, &layer->qkv, 2 * keys + values, s->d_model);
        visit_matrix(walk, &layer->out, s->d_model, values);
    }
    visit_norm(walk, &layer->self_norm, s->d_model);
    if (is_decoder) {
        visit_matrix(walk, &layer->query, keys, s->d_model);
        visit_matrix(walk, &layer->memory, keys + values, s->d_model);
        visit_matrix(walk, &layer->cross_out, s->d_model, values);
        visit_norm(walk, &layer->cross_norm, s->d_model);
    }
    visit_matrix(walk, &layer->inner, s->d_ff, s->d_model);
    visit_matrix(walk, &layer->outer, s->d_model, s->d_ff);
    visit_norm(walk, &layer->feed_norm, s->d_model);
}

/* The order of the tensors: the table of positions if there is one; the embeddings of the source, of
 * the target unless they are the same, the output matrix unless it is the same; the layers of the
 * encoder, of the decoder; with pre_norm the last norm of each; the shortlist if there is one, so that
 * a block begins with that of the same model without it. */
static void visit(Walk *walk, pk_model *model) {
    const pk_sizes *s = &model->sizes;
    if (s->position_kind) {
        int width = s->position_kind == ROTARY ? s->key_size : s->d_model;
        visit_numbers(walk, &model->positions, (uint64_t)s->position_count * (uint64_t)width);
    }
    visit_matrix(walk, &model->source, s->source_words, s->d_model);
    if (s->target_is_source) model->target = model->source;
    else visit_matrix(walk, &model->target, s->target_words, s->d_model);
    if (s->output_is_target) model->output = model->target;
    else visit_matrix(walk, &model->output, s->target_words, s->d_model);
    for (int i = 0; i < s->encoder_layers; i++) visit_layer(walk, s, &model->encoder[i], 0);
    for (int i = 0; i < s->decoder_layers; i++) visit_layer(walk, s, &model->decoder[i], 1);
    if (s->pre_norm) {
        visit_norm(walk, &model->encoder_norm, s->d_model);
        visit_norm(walk, &model->decoder_norm, s->d_model);
    }
    if (s->axes) {
        visit_matrix(walk, &model->shortlist.turn, s->axes, s->d_model);
        visit_matrix(walk, &model->shortlist.first, s->target_words, s->axes);
    }
}

PK_API void pk_close(pk_model *model) {
    if (!model) return;
    free(model->encoder), free(model->decoder);
    free(model);
}

static int within(int32_t value, int32_t least, int32_t most) { return least <= value && value <= most; }

static int sizes_are_possible(const pk_sizes *s) {
    if (!within(s->d_model, 1, MOST_SIZE) || !within(s->d_ff, 1, MOST_SIZE)) return 0;
    if (!within(s->heads, 1, MOST_SIZE) || !within(s->key_size, 1, MOST_SIZE)) return 0;
    if (!within(s->value_size, 1, MOST_SIZE)) return 0;
    /* 2^16 inputs of 127 times 127 fit 32 bits, twice as many would not */
    if ((int64_t)s->heads * s->key_size > MOST_SIZE || (int64_t)s->heads * s->value_size > MOST_SIZE) return 0;
    if (!within(s->encoder_layers, 0, MOST_LAYERS) || !within(s->decoder_layers, 1, MOST_LAYERS)) return 0;
    if (!within(s->source_words, 1, MOST_WORDS) || !within(s->target_words, 4, MOST_WORDS)) return 0;
    if (!within(s->target_is_source, 0, 1) || !within(s->output_is_target, 0, 1) || !within(s->start_is_zero, 0, 1)) return 0;
    if (s->target_is_source && s->source_words != s->target_words) return 0;
    if (!within(s->axes, 0, s->d_model)) return 0;
    if (!within(s->position_kind, NO_POSITIONS, ROTARY)) return 0;
    if (!within(s->position_count, s->position_kind ? 1 : 0, MOST_POSITIONS)) return 0;
    if (s->position_kind == ROTARY && s->key_size % 2) return 0;
    return within(s->activation, RELU, SWISH) && within(s->decoder, SELF_ATTENTION, SSRU) &&
           within(s->pre_norm, 0, 1);
}

/* Walks over a model, which is given to the caller where it is asked for. */
static int walk_over(const pk_sizes *sizes, Walk *walk, const Leaves *leaves, pk_model **given) {
    if (!sizes_are_possible(sizes)) return BAD_SIZES;
    pk_model *model = zeroed(1, sizeof *model);
    if (!model) return NO_MEMORY;
    model->sizes = *sizes, model->leaves = leaves;
    model->encoder = zeroed((size_t)sizes->encoder_layers, sizeof(Layer));
    model->decoder = zeroed((size_t)sizes->decoder_layers, sizeof(Layer));
    if (model->encoder && model->decoder) visit(walk, model);
    else walk->error = NO_MEMORY;
    if (given && !walk->error) *given = model;
    else pk_close(model);
    return walk->error;
}

/* The bytes of a packed model of these sizes, and how many tensors it is made of. */
PK_API int pk_measure(const pk_sizes *sizes, int64_t *bytes, int32_t *tensors) {
    Walk walk = {.filled = -1};
    int error = walk_over(sizes, &walk, NULL, NULL);
    *bytes = error ? 0 : (int64_t)walk.bytes, *tensors = error ? 0 : walk.count;
    return error || walk.bytes > SIZE_MAX / 2 ? BAD_SIZES : OK;
}

/* Packs the tensor with this number into a block of as many bytes as pk_measure says, zeroed before. */
PK_API int pk_pack(const pk_sizes *sizes, uint8_t *block, int64_t bytes, int32_t number, const pk_tensor *tensor) {
    int64_t needed;
    int32_t count;
    int error = pk_measure(sizes, &needed, &count);
    if (error || bytes != needed || !within(number, 0, count - 1)) return BAD_SIZES;
    Walk walk = {.base = block, .filled = number, .tensor = tensor};
    return walk_over(sizes, &walk, NULL, NULL);
}

/* Opens a packed model, which reads its block until it is closed. A block of a file may hold anything:
 * no search reads beyond it. instructions: NULL for the fastest. Returns OK or an error. */
PK_API int pk_open(const pk_sizes *sizes, uint8_t *block, int64_t bytes, const char *instructions, pk_model **opened) {
    *opened = NULL;
    const Leaves *leaves = named_leaves(instructions);
    int64_t needed;
    int32_t count;
    if (!leaves || pk_measure(sizes, &needed, &count) || bytes != needed) return BAD_SIZES;
    Walk walk = {.base = block, .filled = -1, .checks = 1};
    return walk_over(sizes, &walk, leaves, opened);
}

PK_API const char *pk_uses(const pk_model *model) { return model->leaves->name; }

/* The exact sums of one product (rows, outputs) in 32 bits, for comparison with its equation. */
PK_API int pk_sums(const uint8_t *rows, int32_t row_count, const int8_t *weights, int32_t outputs,
                   int32_t inputs, const char *instructions, int32_t *sums) {
    const Leaves *leaves = named_leaves(instructions);
    if (!leaves || !within(row_count, 1, MOST_SIZE) || !within(outputs, 1, MOST_WORDS) ||
        !within(inputs, 1, MOST_SIZE))
        return BAD_SIZES;
    Matrix matrix = {0};
    Pool pool = {0};
    Walk walk = {.filled = -1};
    lay_out(&walk, &matrix, outputs, inputs);
    walk.base = take(&pool, (size_t)walk.bytes, 1), walk.bytes = 0;
    float *ones = take(&pool, (size_t)outputs, sizeof(float));
    int size = matrix.groups * GROUP;
    Rows padded = {take(&pool, (size_t)row_count * (size_t)size, 1), NULL, NULL, size};
    int error = pool.failed ? NO_MEMORY : OK;
    if (!error) {
        pk_tensor tensor = {weights, ones, NULL, outputs, inputs};
        lay_out(&walk, &matrix, outputs, inputs);
        error = pack(&matrix, &tensor);
    }
    if (!error) {
        for (int row = 0; row < row_count; row++)
            for (int i = 0; i < inputs; i++)
                padded.q[(size_t)row * (size_t)size + (size_t)i] = rows[(size_t)row * (size_t)inputs + (size_t)i] & 127;
        leaves->product(&padded, row_count, &matrix, 0, matrix.panels, sums, outputs, 1);
    }
    free_pool(&pool);
    return error;
}

/* ---- a search ---- */

typedef struct {
    int parent, token;
    float log_prob;
} Node; /* a token of a hypothesis */

typedef struct {
    float score, log_prob;
    int node;
} Finish;

typedef struct {
    float total, log_prob;
    int beam, id;
} Candidate;

/* A guessed word and the search before it. */
typedef struct {
    int word, is_set; /* whether the word was set and not guessed */
    int is_free;      /* whether its log p is 0, whatever the logits */
    int node;         /* of the word; -1: it is the stop of its sentence; -2: it is of no hypothesis */
    int token, sentence, last_node, length;
    size_t tree_size, cache_slots;
    float total;
} Held;

/* The best words of some rows, so many of each, largest logit first. */
typedef struct {
    float *logits;
    int *ids, *counts;
} Best;

typedef struct {
    const pk_model *model;
    const pk_request *request;
    int rows, length;   /* live hypotheses; tokens of each */
    int *tokens;        /* by row */
    int *sentence_of;   /* by row */
    int *parents;       /* by new row: the row that it goes on from */
    int *nodes;         /* by row: its last token */
    float *totals;      /* by row */
    int *next_tokens, *next_sentences, *next_nodes;
    float *next_totals;
    size_t *source_starts;   /* by sentence: its first row of the memory */
    float **memory;          /* by layer: keys and values of the sources */
    float **states, **spare; /* by layer: states of the recurrence */
    float **caches;          /* by layer: keys and values of the tokens, a slot for each */
    size_t cache_slots, cache_room;
    int32_t *slots, *next_slots; /* (row, token): the slot of each token of a hypothesis */
    size_t slot_room;            /* tokens of a row of slots */
    Node *tree;
    size_t tree_size, tree_room;
    Finish *kept;                /* by sentence: its best finished hypotheses */
    int *kept_counts, *finished; /* by sentence */
    /* numbers of the newest tokens */
    float *x, *y, *wide, *scores, *logits;
    Rows q;
    int top;      /* candidates of a row */
    int *wanted;  /* by row: the token whose logit is asked for */
    float *wanted_logits, *log_sums;
    Best best;
    /* of guesses */
    Held *held; /* NULL where nothing is guessed */
    int held_count;
    Rows held_rows;     /* what the output reads for them */
    float *held_states; /* (held, layer, d_model): states of the recurrence before each */
    float *turned, *guesses; /* by axis; by panel */
    Rows axes;
    int guessed, missed, panels; /* so far: right words, wrong ones, panels that were computed for both */
    int careful;                 /* the length at which none is guessed */
    int is_careful;              /* whether none is guessed to the end */
} Search;

static void linear(const Leaves *leaves, const float *x, int rows, const Matrix *m, Rows *q, float *y) {
    for (int first = 0; first < rows; first += ROWS_AT_ONCE) {
        int count = rows - first < ROWS_AT_ONCE ? rows - first : ROWS_AT_ONCE;
        leaves->quantize(x + (size_t)first * (size_t)m->inputs, count, m->inputs, q);
        leaves->product(q, count, m, 0, m->panels, y + (size_t)first * (size_t)m->outputs, m->outputs, 0);
    }
}

/* x <- x + result, normalized where the norm comes after the sum. y: room as large as x. */
static void around(const pk_model *model, float *x, float *y, const float *result, int rows, const Norm *norm) {
    size_t numbers = (size_t)rows * (size_t)model->sizes.d_model;
    model->leaves->add(x, result, numbers);
    if (!model->sizes.pre_norm) {
        model->leaves->normalize(x, rows, model->sizes.d_model, norm, model->sizes.norm_eps, y);
        memcpy(x, y, numbers * sizeof(float));
    }
}

/* What a sublayer reads: x, or its norm in y where the norm comes first. */
static const float *before(const pk_model *model, const float *x, float *y, int rows, const Norm *norm) {
    if (!model->sizes.pre_norm) return x;
    model->leaves->normalize(x, rows, model->sizes.d_model, norm, model->sizes.norm_eps, y);
    return y;
}

/* x <- x + FFN(x) with its norm. y: ROWS_AT_ONCE rows of d_model; wide: as many of d_ff. */
static void feed_forward(const pk_model *model, const Layer *layer, float *x, int rows, float *y, float *wide, Rows *q) {
    const Leaves *leaves = model->leaves;
    int d = model->sizes.d_model;
    for (int first = 0; first < rows; first += ROWS_AT_ONCE) {
        int count = rows - first < ROWS_AT_ONCE ? rows - first : ROWS_AT_ONCE;
        float *own = x + (size_t)first * (size_t)d;
        const float *in = before(model, own, y, count, &layer->feed_norm);
        linear(leaves, in, count, &layer->inner, q, wide);
        leaves->activate(wide, (size_t)count * (size_t)model->sizes.d_ff, model->sizes.activation);
        linear(leaves, wide, count, &layer->outer, q, y);
        around(model, own, y, y, count, &layer->feed_norm);
    }
}

/* zero: the id that is embedded as zeros, or -1. */
static void embed(const pk_model *model, const Matrix *table, const int *ids, int count, int zero, int position, int moves,
                  float *x) {
    const pk_sizes *s = &model->sizes;
    for (int i = 0; i < count; i++, x += s->d_model) {
        size_t row = (size_t)(position + (moves ? i : 0));
        const float *added = s->position_kind == ADDED ? model->positions + row * (size_t)s->d_model : NULL;
        if (ids[i] != zero) model->leaves->look_up(table, ids[i], s->embedding_scale, added, x);
        else for (int j = 0; j < s->d_model; j++) x[j] = added ? 0.0f + added[j] : 0.0f;
    }
}

/* Rotates the queries and keys at the start of rows of this size. */
static void rotate(const pk_model *model, float *rows, int count, int size, int position, int moves) {
    const pk_sizes *s = &model->sizes;
    if (s->position_kind != ROTARY) return;
    for (int i = 0; i < count; i++)
        model->leaves->rotate(rows + (size_t)i * (size_t)size, 2 * s->heads, s->key_size,
                              model->positions + (size_t)(position + (moves ? i : 0)) * (size_t)s->key_size);
}

/* Keys and values of a sentence, head by head: what a query reads lies in one piece, in the order in
 * which it is read. from: the first key of rows that are so many numbers apart; to: as many numbers. */
static Seen by_head(const pk_sizes *s, const float *from, int count, size_t apart, float *to) {
    size_t keys = (size_t)s->key_size, values = (size_t)s->value_size, rows = (size_t)count;
    Seen seen = {to, to + rows * (size_t)s->heads * keys, keys, values, rows * keys, rows * values, NULL, count};
    for (size_t row = 0; from && row < rows; row++, from += apart)
        for (size_t head = 0; head < (size_t)s->heads; head++) {
            memcpy(to + head * seen.key_head + row * keys, from + head * keys, keys * sizeof(float));
            memcpy(to + (size_t)(seen.values - seen.keys) + head * seen.value_head + row * values,
                   from + (size_t)s->heads * keys + head * values, values * sizeof(float));
        }
    return seen;
}

/* The hidden states of some sources, one after another: count rows. packed: room for a row of queries,
 * keys and values for each token; spare: for keys and values of the longest source. */
static void encode(Search *search, const int32_t *ids, const int32_t *lengths, int count, float *x, float *y, float *packed,
                   float *heads, float *spare) {
    const pk_model *model = search->model;
    const pk_sizes *s = &model->sizes;
    int keys = s->heads * s->key_size, values = s->heads * s->value_size, size = 2 * keys + values;
    for (int at = 0, own = 0; at < count; at += lengths[own++])
        embed(model, &model->source, ids + at, lengths[own], -1, 0, 1, x + (size_t)at * (size_t)s->d_model);
    for (int i = 0; i < s->encoder_layers; i++) {
        const Layer *layer = &model->encoder[i];
        const float *in = before(model, x, y, count, &layer->self_norm);
        linear(model->leaves, in, count, &layer->qkv, &search->q, packed);
        for (int at = 0, own = 0; at < count; at += lengths[own++]) {
            float *first = packed + (size_t)at * (size_t)size;
            rotate(model, first, lengths[own], size, 0, 1);
            Seen seen = by_head(s, first + keys, lengths[own], (size_t)size, spare);
            for (int row = 0; row < lengths[own]; row++)
                model->leaves->attend(first + (size_t)row * (size_t)size, &seen, s->heads, s->key_size, s->value_size,
                                      search->scores, heads + (size_t)(at + row) * (size_t)values);
        }
        linear(model->leaves, heads, count, &layer->out, &search->q, y);
        around(model, x, y, y, count, &layer->self_norm);
        feed_forward(model, layer, x, count, y, search->wide, &search->q);
    }
    if (s->pre_norm) {
        model->leaves->normalize(x, count, s->d_model, &model->encoder_norm, s->norm_eps, y);
        memcpy(x, y, (size_t)count * (size_t)s->d_model * sizeof(float));
    }
}

/* Feeds one token to each live hypothesis; its hidden state is in x. */
static int step(Search *search) {
    const pk_model *model = search->model;
    const pk_sizes *s = &model->sizes;
    const Leaves *leaves = model->leaves;
    int d = s->d_model, rows = search->rows, keys = s->heads * s->key_size, values = s->heads * s->value_size;
    int packed = 2 * keys + values, cached = keys + values;
    float *x = search->x, *y = search->y, *heads = search->y;

    embed(model, &model->target, search->tokens, rows, s->start_is_zero ? search->request->bos : -1, search->length, 0, x);

    if (s->decoder == SELF_ATTENTION) {
        size_t needed = search->cache_slots + (size_t)rows;
        if (needed > INT32_MAX) return NO_MEMORY;
        for (int i = 0; i < s->decoder_layers; i++) {
            size_t room = search->cache_room;
            if (!grow((void **)&search->caches[i], &room, needed, (size_t)cached * sizeof(float))) return NO_MEMORY;
            if (i == s->decoder_layers - 1) search->cache_room = room;
        }
        if ((size_t)search->length >= search->slot_room) { /* every row moves to a longer one */
            size_t longer = search->slot_room * 2;
            size_t most_rows = (size_t)search->request->sentences * (size_t)search->request->beam;
            int32_t *a = zeroed(most_rows * longer, sizeof(int32_t)), *b = zeroed(most_rows * longer, sizeof(int32_t));
            if (!a || !b) return free(a), free(b), NO_MEMORY;
            for (int row = 0; row < rows; row++)
                memcpy(a + (size_t)row * longer, search->slots + (size_t)row * search->slot_room,
                       (size_t)search->length * sizeof(int32_t));
            free(search->slots), free(search->next_slots);
            search->slots = a, search->next_slots = b, search->slot_room = longer;
        }
        for (int row = 0; row < rows; row++)
            search->slots[(size_t)row * search->slot_room + (size_t)search->length] = (int32_t)(search->cache_slots + (size_t)row);
    }

    for (int i = 0; i < s->decoder_layers; i++) {
        const Layer *layer = &model->decoder[i];
        const float *in = before(model, x, y, rows, &layer->self_norm);
        linear(leaves, in, rows, &layer->qkv, &search->q, search->wide);
        if (s->decoder == SSRU) {
            for (int row = 0; row < rows; row++)
                leaves->recur(search->wide + (size_t)row * 2 * (size_t)d, search->states[i] + (size_t)row * (size_t)d, d,
                              y + (size_t)row * (size_t)d);
            around(model, x, search->wide, y, rows, &layer->self_norm);
        } else {
            rotate(model, search->wide, rows, packed, search->length, 0);
            float *cache = search->caches[i];
            for (int row = 0; row < rows; row++) {
                float *own = search->wide + (size_t)row * (size_t)packed;
                memcpy(cache + (search->cache_slots + (size_t)row) * (size_t)cached, own + keys, (size_t)cached * sizeof(float));
                Seen seen = {cache, cache + keys, (size_t)cached, (size_t)cached, (size_t)s->key_size, (size_t)s->value_size,
                             search->slots + (size_t)row * search->slot_room, search->length + 1};
                leaves->attend(own, &seen, s->heads, s->key_size, s->value_size, search->scores,
                               heads + (size_t)row * (size_t)values);
            }
            linear(leaves, heads, rows, &layer->out, &search->q, search->wide);
            around(model, x, y, search->wide, rows, &layer->self_norm);
        }

        in = before(model, x, y, rows, &layer->cross_norm);
        linear(leaves, in, rows, &layer->query, &search->q, search->wide);
        for (int row = 0; row < rows; row++) {
            int sentence = search->sentence_of[row];
            float *memory = search->memory[i] + search->source_starts[sentence] * (size_t)cached;
            Seen seen = by_head(s, NULL, search->request->source_sizes[sentence], 0, memory);
            leaves->attend(search->wide + (size_t)row * (size_t)keys, &seen, s->heads, s->key_size, s->value_size,
                           search->scores, heads + (size_t)row * (size_t)values);
        }
        linear(leaves, heads, rows, &layer->cross_out, &search->q, search->wide);
        around(model, x, y, search->wide, rows, &layer->cross_norm);

        feed_forward(model, layer, x, rows, y, search->wide, &search->q);
    }
    if (s->pre_norm) {
        leaves->normalize(x, rows, d, &model->decoder_norm, s->norm_eps, y);
        memcpy(x, y, (size_t)rows * (size_t)d * sizeof(float));
    }
    search->cache_slots += s->decoder == SELF_ATTENTION ? (size_t)rows : 0;
    return OK;
}

/* Inserts a word among the best of a row, largest logit first; of equals the first stays first. */
static void insert(const Best *best, int row, int top, float logit, int id) {
    float *logits = best->logits + (size_t)row * (size_t)top;
    int *ids = best->ids + (size_t)row * (size_t)top, count = best->counts[row];
    int place = count < top ? count : top - 1;
    while (place > 0 && logits[place - 1] < logit) {
        logits[place] = logits[place - 1], ids[place] = ids[place - 1];
        place--;
    }
    logits[place] = logit, ids[place] = id;
    if (count < top) best->counts[row]++;
}

/* For each of some rows in 7 bits, at most ROWS_AT_ONCE, the log of the sum of exp(logit), the best words
 * and the logit of the wanted one. */
static int judge_rows(Search *search, const Rows *q, int count, const int *wanted, float *wanted_logits, float *log_sums,
                      Best best) {
    const pk_request *r = search->request;
    const Leaves *leaves = search->model->leaves;
    const Matrix *m = &search->model->output;
    int top = search->top;
    float largest[ROWS_AT_ONCE], sums[ROWS_AT_ONCE];
    for (int row = 0; row < count; row++) largest[row] = -INFINITY, sums[row] = 0.0f, best.counts[row] = 0;

    for (int word = 0; word < m->outputs; word += WORDS_AT_ONCE) {
        int words = m->outputs - word < WORDS_AT_ONCE ? m->outputs - word : WORDS_AT_ONCE;
        int panels = (words + PANEL - 1) / PANEL;
        leaves->product(q, count, m, word / PANEL, word / PANEL + panels, search->logits, WORDS_AT_ONCE, 0);
        for (int row = 0; row < count; row++) {
            float *logits = search->logits + (size_t)row * WORDS_AT_ONCE;
            int place = wanted[row] - word;
            float by_block[WORDS_AT_ONCE / BLOCK], most = leaves->largest_by_block(logits, words, by_block);
            float before_it = largest[row];
            if (!(most <= before_it)) largest[row] = most;
            if (before_it != -INFINITY) sums[row] *= (float)exp((double)(before_it - largest[row]));
            sums[row] += leaves->sum_of_exps(logits, words, largest[row]);
            if (place >= 0 && place < words) wanted_logits[row] = logits[place];

            const float *known = best.logits + (size_t)row * (size_t)top;
            if (most != most) return NOT_FINITE;
            for (int from = 0; from < words; from += BLOCK) {
                int size = words - from < BLOCK ? words - from : BLOCK;
                int is_full = best.counts[row] == top;
                if (is_full && !(by_block[from / BLOCK] > known[top - 1])) continue;
                for (int j = from; j < from + size; j++) {
                    int id = word + j;
                    is_full = best.counts[row] == top;
                    if (is_full && !(logits[j] > known[top - 1])) continue;
                    if (id != r->pad && id != r->bos) insert(&best, row, top, logits[j], id);
                }
            }
        }
    }
    for (int row = 0; row < count; row++) {
        log_sums[row] = largest[row] + (float)log((double)sums[row]);
        if (!isfinite(log_sums[row])) return NOT_FINITE;
    }
    return OK;
}

/* The same for all rows of the search. */
static int judge_words(Search *search) {
    int d = search->model->sizes.d_model, error = OK;
    for (int first = 0; !error && first < search->rows; first += ROWS_AT_ONCE) {
        int count = search->rows - first < ROWS_AT_ONCE ? search->rows - first : ROWS_AT_ONCE;
        size_t top = (size_t)first * (size_t)search->top;
        Best best = {search->best.logits + top, search->best.ids + top, search->best.counts + first};
        search->model->leaves->quantize(search->x + (size_t)first * (size_t)d, count, d, &search->q);
        error = judge_rows(search, &search->q, count, search->wanted + first, search->wanted_logits + first,
                           search->log_sums + first, best);
    }
    return error;
}

/* is_set: whether the word was set and not chosen, so that no log p rules it out. */
static float log_prob_of(float logit, float log_sum, int is_set, int is_free) {
    float log_prob = is_free ? 0.0f : logit - log_sum;
    return is_set && log_prob < -1e30f ? -1e30f : log_prob;
}

static int add_node(Search *search, int parent, int token, float log_prob, int *number) {
    if (search->tree_size >= INT32_MAX / 2) return NO_MEMORY;
    if (!grow((void **)&search->tree, &search->tree_room, search->tree_size + 1, sizeof(Node))) return NO_MEMORY;
    *number = (int)search->tree_size;
    search->tree[search->tree_size++] = (Node){parent, token, log_prob};
    return OK;
}

/* Adds a continuation to the candidates of a sentence, largest total first, at most so many. */
static int add_candidate(Candidate *list, int count, int most, Candidate each) {
    int place = count < most ? count : most;
    while (place > 0 && list[place - 1].total < each.total) place--;
    if (place >= most) return count;
    int last = count < most ? count : most - 1;
    for (int i = last; i > place; i--) list[i] = list[i - 1];
    list[place] = each;
    return count < most ? count + 1 : count;
}

/* One sentence after a step: finishes, the hypotheses that go on, and whether it is done. */
static int choose(Search *search, int sentence, int first, int beams, int *next_rows) {
    const pk_request *r = search->request;
    Finish *kept = search->kept + (size_t)sentence * (size_t)r->kept;
    int *kept_count = &search->kept_counts[sentence], *finished = &search->finished[sentence];
    int length = search->length, limit = r->limits[sentence], must_stop = limit <= length;
    Candidate list[2 * MOST_BEAM];
    int count = 0, most = r->beam == 1 ? 1 : 2 * r->beam;

    for (int beam = 0; beam < beams; beam++) {
        int row = first + beam;
        if (must_stop || r->forced) {
            float log_prob = log_prob_of(search->wanted_logits[row], search->log_sums[row], 1, must_stop && r->free_stop);
            count = add_candidate(list, count, most,
                                  (Candidate){search->totals[row] + log_prob, log_prob, beam, search->wanted[row]});
            continue;
        }
        for (int i = 0; i < search->best.counts[row]; i++) {
            size_t place = (size_t)row * (size_t)search->top + (size_t)i;
            float log_prob = log_prob_of(search->best.logits[place], search->log_sums[row], 0, 0);
            count = add_candidate(list, count, most,
                                  (Candidate){search->totals[row] + log_prob, log_prob, beam, search->best.ids[place]});
        }
    }

    int live = *next_rows;
    for (int i = 0; i < count; i++) {
        Candidate *each = &list[i];
        int row = first + each->beam;
        if (each->total == -INFINITY) continue;
        if (each->id == r->eos) {
            if (i >= r->beam) continue; /* a stop further back is lost */
            float score = each->total / r->penalties[length + 1];
            int place = *kept_count;
            while (place > 0 && kept[place - 1].score < score) place--;
            (*finished)++;
            if (place >= r->kept) continue;
            if (*kept_count < r->kept) (*kept_count)++;
            for (int j = *kept_count - 1; j > place; j--) kept[j] = kept[j - 1];
            kept[place] = (Finish){score, each->log_prob, search->nodes[row]};
        } else if (live - *next_rows < r->beam) {
            search->next_tokens[live] = each->id, search->next_sentences[live] = sentence;
            search->parents[live] = row, search->next_totals[live] = each->total;
            if (add_node(search, search->nodes[row], each->id, each->log_prob, &search->next_nodes[live])) return -1;
            live++;
        }
    }

    int is_done = must_stop || *finished >= r->enough || live == *next_rows;
    if (!is_done && *kept_count == r->kept) {
        int at = r->bound == BOUND_AT_LIMIT ? limit + 1 : r->bound == BOUND_AT_NEXT ? length + 2 : length + 1;
        is_done = kept[r->kept - 1].score >= search->next_totals[*next_rows] / r->penalties[at];
    }
    if (!is_done) *next_rows = live;
    return is_done;
}

#define SWAP(type, a, b) do { type swapped = a; a = b; b = swapped; } while (0)

/* The rows with which the search goes on take their states from those that they continue. */
static void go_on(Search *search, int next_rows) {
    const pk_sizes *s = &search->model->sizes;
    search->rows = next_rows;
    if (!next_rows) return; /* states stay, as a guess may be taken back */
    size_t d = (size_t)s->d_model;
    for (int i = 0; s->decoder == SSRU && i < s->decoder_layers; i++) {
        for (int row = 0; row < next_rows; row++)
            memcpy(search->spare[i] + (size_t)row * d, search->states[i] + (size_t)search->parents[row] * d, d * sizeof(float));
        SWAP(float *, search->states[i], search->spare[i]);
    }
    if (s->decoder == SELF_ATTENTION) {
        for (int row = 0; row < next_rows; row++)
            memcpy(search->next_slots + (size_t)row * search->slot_room,
                   search->slots + (size_t)search->parents[row] * search->slot_room,
                   ((size_t)search->length + 1) * sizeof(int32_t));
        SWAP(int32_t *, search->slots, search->next_slots);
    }
    SWAP(int *, search->tokens, search->next_tokens);
    SWAP(int *, search->sentence_of, search->next_sentences);
    SWAP(int *, search->nodes, search->next_nodes);
    SWAP(float *, search->totals, search->next_totals);
    search->length++;
}

/* A translation alone waits for its output matrix, which is read once for each token. So the words of a
 * greedy search of one sentence are guessed from few of its logits, and compared with all logits of many
 * steps at once, which read the matrix once. A guess that was wrong is taken back with all that followed,
 * and its step is done without guessing. So a guess decides on the time alone, and no word and no number
 * depends on it, whatever the shortlist holds. */

/* Whether the next word is guessed or set: then the search before it is kept. */
static int begin_guess(Search *search) {
    const pk_sizes *s = &search->model->sizes;
    if (!search->held || search->rows != 1 || search->length == search->careful) return 0;
    if (search->is_careful || search->missed > 1 + search->guessed / 16) return 0;
    search->held[search->held_count] =
        (Held){.node = -2, .token = search->tokens[0], .sentence = search->sentence_of[0], .last_node = search->nodes[0],
               .length = search->length, .tree_size = search->tree_size, .cache_slots = search->cache_slots,
               .total = search->totals[0]};
    for (int i = 0; s->decoder == SSRU && i < s->decoder_layers; i++)
        memcpy(search->held_states + ((size_t)search->held_count * (size_t)s->decoder_layers + (size_t)i) * (size_t)s->d_model,
               search->states[i], (size_t)s->d_model * sizeof(float));
    return 1;
}

/* The word whose logit is the largest of the panels that may hold it. Returns whether there is one. */
static int guess_word(Search *search, const Rows *q) {
    const pk_model *model = search->model;
    const Leaves *leaves = model->leaves;
    const Matrix *m = &model->output;
    leaves->product(q, 1, &model->shortlist.turn, 0, model->shortlist.turn.panels, search->turned, model->sizes.axes, 0);
    leaves->quantize(search->turned, 1, model->sizes.axes, &search->axes);
    leaves->guess(&search->axes, &model->shortlist.first, search->guesses);


    /* the likeliest panels one by one, as each raises what the others are compared with */
    float best = -INFINITY;
    int word = -1, panels[WORDS_AT_ONCE / PANEL], next = 0;
    for (int turn = 0;; turn++) {
        int count = 0;
        if (turn < ONE_BY_ONE) {
            int likeliest = leaves->largest_index(search->guesses, m->panels);
            if (search->guesses[likeliest] >= best) panels[count++] = likeliest;
        } else
            for (; next < m->panels && count < WORDS_AT_ONCE / PANEL; next++)
                if (search->guesses[next] >= best) panels[count++] = next;
        if (!count) break;
        leaves->some_panels(q, m, panels, count, search->logits);
        search->panels += count;
        for (int i = 0; i < count; i++) {
            search->guesses[panels[i]] = -INFINITY;
            for (int j = 0; j < PANEL && panels[i] * PANEL + j < m->outputs; j++) {
                int id = panels[i] * PANEL + j;
                float logit = search->logits[i * PANEL + j];
                if (id == search->request->pad || id == search->request->bos) continue;
                if (logit > best) best = logit, word = id;
            }
        }
    }
    search->best.logits[0] = best, search->best.ids[0] = word, search->best.counts[0] = 1;
    return word >= 0 && isfinite(best);
}

/* Guesses the word of the only row, unless it is set, and holds the row. Returns whether it could. */
static int hold(Search *search) {
    const pk_request *r = search->request;
    Held *held = &search->held[search->held_count];
    Rows own = search->held_rows;
    own.q += (size_t)search->held_count * (size_t)own.size, own.low += search->held_count, own.step += search->held_count;
    search->model->leaves->quantize(search->x, 1, search->model->sizes.d_model, &own);
    int must_stop = r->limits[held->sentence] <= search->length;
    held->is_set = must_stop || r->forced, held->is_free = must_stop && r->free_stop;
    search->wanted_logits[0] = search->log_sums[0] = 0.0f;
    if (!held->is_set && (!search->model->sizes.axes || !guess_word(search, &own))) return 0;
    held->word = held->is_set ? search->wanted[0] : search->best.ids[0];
    return 1;
}

/* The search as it was before a held word, whose step is done without a guess. */
static void take_back(Search *search, const Held *held) {
    const pk_sizes *s = &search->model->sizes;
    size_t layer = (size_t)(held - search->held) * (size_t)s->decoder_layers, d = (size_t)s->d_model;
    search->rows = 1, search->length = search->careful = held->length;
    search->tokens[0] = held->token, search->sentence_of[0] = held->sentence, search->nodes[0] = held->last_node;
    search->totals[0] = held->total;
    search->tree_size = held->tree_size, search->cache_slots = held->cache_slots;
    search->kept_counts[held->sentence] = search->finished[held->sentence] = 0;
    for (int i = 0; s->decoder == SSRU && i < s->decoder_layers; i++)
        memcpy(search->states[i], search->held_states + (layer + (size_t)i) * d, d * sizeof(float));
    search->missed++;
}

/* Compares all held words with all logits, and sets their log p. Ends before the first that was wrong. */
static void settle(Search *search) {
    int wanted[MOST_HELD] = {0}, ids[MOST_HELD], counts[MOST_HELD], count = search->held_count;
    float logits[MOST_HELD], log_sums[MOST_HELD], most[MOST_HELD];
    for (int i = 0; i < count; i++) wanted[i] = search->held[i].word;
    search->held_count = 0;
    int error = judge_rows(search, &search->held_rows, count, wanted, logits, log_sums, (Best){most, ids, counts});
    if (error) { /* perhaps behind a word that was wrong, so that no step of a search without guesses ends so */
        take_back(search, &search->held[0]);
        search->is_careful = 1;
        return;
    }
    float total = search->held[0].total;
    for (int i = 0; i < count; i++) {
        Held *held = &search->held[i];
        float log_prob = log_prob_of(logits[i], log_sums[i], held->is_set, held->is_free);
        held->total = total, total += log_prob;
        if (!held->is_set && (held->word != ids[i] || log_prob < -1e30f)) {
            take_back(search, held);
            return;
        }
        search->guessed++;
        if (held->node >= 0) search->tree[held->node].log_prob = log_prob;
        else if (held->node == -1) search->kept[(size_t)held->sentence * (size_t)search->request->kept].log_prob = log_prob;
    }
    if (search->rows) search->totals[0] = total;
}

static void write_result(const Search *search, int sentence, const pk_result *result) {
    const pk_request *r = search->request;
    const Finish *kept = search->kept + (size_t)sentence * (size_t)r->kept;
    for (int i = 0; i < r->n_best; i++) {
        size_t place = (size_t)sentence * (size_t)r->n_best + (size_t)i;
        result->sizes[place] = 0;
        if (i >= search->kept_counts[sentence]) continue;
        int size = 1;
        for (int node = kept[i].node; node >= 0; node = search->tree[node].parent) size++;
        int32_t *ids = result->ids + place * ((size_t)r->most + 1);
        float *log_probs = result->log_probs + place * ((size_t)r->most + 1);
        result->sizes[place] = size;
        ids[size - 1] = r->eos, log_probs[size - 1] = kept[i].log_prob;
        int at = size - 2;
        for (int node = kept[i].node; node >= 0; node = search->tree[node].parent, at--)
            ids[at] = search->tree[node].token, log_probs[at] = search->tree[node].log_prob;
    }
}

static int request_is_possible(const pk_sizes *s, const pk_request *r) {
    if (!within(r->sentences, 1, MOST_SENTENCES) || !within(r->beam, 1, MOST_BEAM)) return 0;
    if (!within(r->n_best, 1, r->beam) || !within(r->kept, r->n_best, r->beam)) return 0;
    if (!within(r->pad, 0, s->target_words - 1) || !within(r->bos, 0, s->target_words - 1)) return 0;
    if (!within(r->eos, 0, s->target_words - 1) || r->eos == r->pad || r->eos == r->bos) return 0;
    if (!within(r->bound, BOUND_AT_LIMIT, BOUND_NOW) || !within(r->most, 0, MOST_POSITIONS)) return 0;
    if (r->forced && r->beam != 1) return 0;
    size_t at = 0;
    for (int i = 0; i < r->sentences; i++) {
        if (!within(r->source_sizes[i], 1, MOST_POSITIONS) || !within(r->limits[i], 0, r->most)) return 0;
        if (s->position_kind && r->source_sizes[i] > s->position_count) return 0;
        /* rotary positions are those of self-attention, which an SSRU decoder lacks */
        int is_numbered = s->position_kind == ADDED || (s->position_kind == ROTARY && s->decoder == SELF_ATTENTION);
        if (is_numbered && r->limits[i] >= s->position_count) return 0;
        for (int j = 0; j < r->source_sizes[i]; j++, at++)
            if (!within(r->source[at], 0, s->source_words - 1)) return 0;
        for (int j = 0; r->forced && j < r->limits[i]; j++)
            if (!within(r->forced[(size_t)i * (size_t)r->most + (size_t)j], 0, s->target_words - 1)) return 0;
    }
    return 1;
}

/* Encodes all sources and projects the keys and values of each decoder layer. */
static int read_sources(Search *search, int longest) {
    const pk_model *model = search->model;
    const pk_sizes *s = &model->sizes;
    int keys = s->heads * s->key_size, values = s->heads * s->value_size;
    const int32_t *lengths = search->request->source_sizes;
    size_t rows = (size_t)(longest > ROWS_AT_ONCE ? longest : ROWS_AT_ONCE);
    Pool pool = {0};
    float *x = take(&pool, rows * (size_t)s->d_model, sizeof(float));
    float *y = take(&pool, rows * (size_t)s->d_model, sizeof(float));
    float *packed = take(&pool, rows * (size_t)(2 * keys + values), sizeof(float));
    float *heads = take(&pool, rows * (size_t)values, sizeof(float));
    float *spare = take(&pool, (size_t)longest * (size_t)(keys + values), sizeof(float));
    for (int first = 0; !pool.failed && first < search->request->sentences;) {
        /* as many as fit: every matrix is read once for all of them */
        size_t start = search->source_starts[first], count = 0;
        int last = first;
        while (last < search->request->sentences && (last == first || count + (size_t)lengths[last] <= rows))
            count += (size_t)lengths[last++];
        encode(search, search->request->source + start, lengths + first, (int)count, x, y, packed, heads, spare);
        for (int layer = 0; layer < s->decoder_layers; layer++) {
            linear(model->leaves, x, (int)count, &model->decoder[layer].memory, &search->q, packed);
            const float *from = packed;
            float *to = search->memory[layer] + start * (size_t)(keys + values);
            for (int own = first; own < last; own++) {
                by_head(s, from, lengths[own], (size_t)(keys + values), to);
                from += (size_t)lengths[own] * (size_t)(keys + values), to += (size_t)lengths[own] * (size_t)(keys + values);
            }
        }
        first = last;
    }
    free_pool(&pool);
    return pool.failed ? NO_MEMORY : OK;
}

static int run(Search *search, const pk_result *result) {
    const pk_request *r = search->request;
    size_t d = (size_t)search->model->sizes.d_model;
    while (search->rows || search->held_count) {
        if (search->held_count == MOST_HELD || !search->rows) {
            settle(search);
            continue;
        }

        int is_guess = begin_guess(search), error = step(search);
        if (error) return error;
        for (int row = 0; row < search->rows; row++) {
            int sentence = search->sentence_of[row], limit = r->limits[sentence];
            int is_forced = r->forced && search->length < limit;
            search->wanted[row] = is_forced ? r->forced[(size_t)sentence * (size_t)r->most + (size_t)search->length] : r->eos;
            if (result->states)
                memcpy(result->states + ((size_t)sentence * ((size_t)r->most + 1) + (size_t)search->length) * d,
                       search->x + (size_t)row * d, d * sizeof(float));
        }
        if (is_guess && !hold(search)) { /* the step again, without a guess, once those before it are settled */
            take_back(search, &search->held[search->held_count]);
            if (search->held_count) settle(search);
            continue;
        }
        if (!is_guess && (error = judge_words(search))) return error;

        int next_rows = 0;
        for (int first = 0; first < search->rows;) {
            int sentence = search->sentence_of[first], beams = 1;
            while (first + beams < search->rows && search->sentence_of[first + beams] == sentence) beams++;
            if (choose(search, sentence, first, beams, &next_rows) < 0) return NO_MEMORY;
            first += beams;
        }
        if (is_guess) {
            Held *held = &search->held[search->held_count++];
            if (search->tree_size > held->tree_size) held->node = (int)held->tree_size;
            else if (search->kept_counts[held->sentence]) held->node = -1;
        }
        go_on(search, next_rows);
    }
    for (int sentence = 0; sentence < r->sentences; sentence++) write_result(search, sentence, result);
    if (result->counts) memcpy(result->counts, (int32_t[]){search->guessed, search->missed, search->panels}, 3 * sizeof(int32_t));
    return OK;
}

static size_t largest_of(size_t a, size_t b) { return a > b ? a : b; }

static Rows take_rows(Pool *pool, size_t count, int inputs) {
    int size = (inputs + GROUP - 1) / GROUP * GROUP;
    return (Rows){take(pool, count * (size_t)size, 1), take(pool, count, sizeof(float)), take(pool, count, sizeof(float)), size};
}

static void prepare_guesses(Search *search, Pool *pool) {
    const pk_sizes *s = &search->model->sizes;
    search->careful = -1;
    search->held = take(pool, MOST_HELD, sizeof(Held));
    search->held_rows = take_rows(pool, MOST_HELD, s->d_model);
    size_t states = s->decoder == SSRU ? (size_t)s->decoder_layers * (size_t)s->d_model : 0;
    search->held_states = take(pool, MOST_HELD * states, sizeof(float));
    search->axes = take_rows(pool, 1, s->axes);
    search->turned = take(pool, (size_t)s->axes, sizeof(float));
    search->guesses = take(pool, (size_t)search->model->output.panels, sizeof(float));
}

/* Translates a batch. Returns OK or an error. */
PK_API int pk_search(const pk_model *model, const pk_request *request, const pk_result *result) {
    const pk_sizes *s = &model->sizes;
    const pk_request *r = request;
    if (!request_is_possible(s, r) || (result->states && r->beam != 1)) return BAD_REQUEST;

    Search search = {.model = model, .request = request, .slot_room = 32};
    Pool pool = {0};
    size_t rows = (size_t)r->sentences * (size_t)r->beam, layers = (size_t)s->decoder_layers;
    size_t d = (size_t)s->d_model, keys = (size_t)s->heads * (size_t)s->key_size;
    size_t values = (size_t)s->heads * (size_t)s->value_size;
    search.top = r->beam == 1 ? 1 : 2 * r->beam;

    search.source_starts = take(&pool, (size_t)r->sentences + 1, sizeof(size_t));
    int longest = 0;
    for (int i = 0; !pool.failed && i < r->sentences; i++) {
        search.source_starts[i + 1] = search.source_starts[i] + (size_t)r->source_sizes[i];
        if (r->source_sizes[i] > longest) longest = r->source_sizes[i];
    }

    int **ints[] = {&search.tokens, &search.sentence_of, &search.parents, &search.nodes, &search.next_tokens,
                    &search.next_sentences, &search.next_nodes, &search.wanted, &search.best.counts};
    for (size_t i = 0; i < sizeof ints / sizeof *ints; i++) *ints[i] = take(&pool, rows, sizeof(int));
    float **floats[] = {&search.totals, &search.next_totals, &search.wanted_logits, &search.log_sums};
    for (size_t i = 0; i < sizeof floats / sizeof *floats; i++) *floats[i] = take(&pool, rows, sizeof(float));
    search.best.ids = take(&pool, rows * (size_t)search.top, sizeof(int));
    search.best.logits = take(&pool, rows * (size_t)search.top, sizeof(float));

    size_t widest = largest_of(largest_of(d, values), largest_of((size_t)s->d_ff, keys));
    size_t most_tokens = (size_t)longest > (size_t)r->most + 1 ? (size_t)longest : (size_t)r->most + 1;
    search.x = take(&pool, rows * d, sizeof(float));
    search.y = take(&pool, largest_of(rows, ROWS_AT_ONCE) * largest_of(d, values), sizeof(float));
    search.wide = take(&pool, largest_of(rows * largest_of(2 * keys + values, 2 * d), ROWS_AT_ONCE * widest), sizeof(float));
    search.scores = take(&pool, most_tokens + 7, sizeof(float));
    search.logits = take(&pool, (size_t)ROWS_AT_ONCE * WORDS_AT_ONCE, sizeof(float));
    search.q.q = take(&pool, ROWS_AT_ONCE * (widest + GROUP), 1);
    search.q.low = take(&pool, ROWS_AT_ONCE, sizeof(float));
    search.q.step = take(&pool, ROWS_AT_ONCE, sizeof(float));

    search.memory = take(&pool, layers, sizeof(float *));
    search.states = take(&pool, layers, sizeof(float *));
    search.spare = take(&pool, layers, sizeof(float *));
    search.caches = take(&pool, layers, sizeof(float *));
    search.kept = take(&pool, (size_t)r->sentences * (size_t)r->kept, sizeof(Finish));
    search.kept_counts = take(&pool, (size_t)r->sentences, sizeof(int));
    search.finished = take(&pool, (size_t)r->sentences, sizeof(int));
    if (r->beam == 1 && (s->axes || r->forced)) prepare_guesses(&search, &pool);

    int error = pool.failed ? NO_MEMORY : OK;
    for (size_t i = 0; !error && i < layers; i++) {
        search.memory[i] = zeroed(search.source_starts[r->sentences] * (keys + values), sizeof(float));
        if (!search.memory[i]) error = NO_MEMORY;
        if (s->decoder == SSRU) {
            search.states[i] = zeroed(rows * d, sizeof(float));
            search.spare[i] = zeroed(rows * d, sizeof(float));
            if (!search.states[i] || !search.spare[i]) error = NO_MEMORY;
        }
    }
    if (!error && s->decoder == SELF_ATTENTION) {
        search.slots = zeroed(rows * search.slot_room, sizeof(int32_t));
        search.next_slots = zeroed(rows * search.slot_room, sizeof(int32_t));
        if (!search.slots || !search.next_slots) error = NO_MEMORY;
    }

    if (!error) error = read_sources(&search, longest);
    if (!error) {
        search.rows = r->sentences;
        for (int i = 0; i < r->sentences; i++)
            search.tokens[i] = r->bos, search.sentence_of[i] = i, search.nodes[i] = -1;
        error = run(&search, result);
    }

    for (size_t i = 0; !pool.failed && i < layers; i++)
        free(search.memory[i]), free(search.states[i]), free(search.spare[i]), free(search.caches[i]);
    free(search.slots), free(search.next_slots), free(search.tree);
    free_pool(&pool);
    return error;
}

#else /* ---- PK_LEAVES: the loops over numbers ---- */

INLINE F8 L(load)(const float *from) {
    F8 v;
    memcpy(&v, from, sizeof v);
    return v;
}

INLINE void L(store)(float *to, F8 v) { memcpy(to, &v, sizeof v); }

INLINE F8 L(all)(float x) { return (F8){x, x, x, x, x, x, x, x}; }

#if PK_DOT == PK_AVX2 || PK_DOT == PK_VNNI || PK_DOT == PK_VNNI512
#define PK_X86 1
#else
#define PK_X86 0
#endif

/* a where the mask is set, else b */
INLINE F8 L(where)(I8 mask, F8 a, F8 b) {
#if PK_X86
    return (F8)_mm256_blendv_ps((__m256)b, (__m256)a, (__m256)mask);
#else
    return (F8)(((I8)a & mask) | ((I8)b & ~mask));
#endif
}

/* a where it is larger, else b; so b where a is NaN */
INLINE F8 L(larger)(F8 a, F8 b) {
#if PK_X86
    return (F8)_mm256_max_ps((__m256)a, (__m256)b);
#else
    return L(where)(a > b, a, b);
#endif
}

INLINE F8 L(smaller)(F8 a, F8 b) {
#if PK_X86
    return (F8)_mm256_min_ps((__m256)a, (__m256)b);
#else
    return L(where)(a < b, a, b);
#endif
}

/* The last numbers of a row, filled up. */
INLINE F8 L(load_some)(const float *from, int count, float filling) {
    F8 v = L(all)(filling);
    memcpy(&v, from, (size_t)count * sizeof(float));
    return v;
}

INLINE float L(sum)(F8 v) { return ((v[0] + v[4]) + (v[2] + v[6])) + ((v[1] + v[5]) + (v[3] + v[7])); }

INLINE float L(dot)(const float *a, const float *b, int count) {
    F8 s = L(all)(0.0f);
    int i = 0;
    for (; i + 8 <= count; i += 8) s += L(load)(a + i) * L(load)(b + i);
    if (i < count) s += L(load_some)(a + i, count - i, 0.0f) * L(load_some)(b + i, count - i, 0.0f);
    return L(sum)(s);
}

/* exp(x) for x at most 88, within some 1e-7 of it: 2^n times a polynomial on ln 2 / 2 around 0.
 * Source: the constants of Cephes, expf. NaN stays NaN. */
INLINE F8 L(exp_up_to_88)(F8 x) {
    x = L(larger)(L(all)(-87.0f), x);
    /* adding and subtracting 1.5 · 2^23 rounds to a whole number */
    F8 shifted = x * 1.44269504f + 12582912.0f;
    F8 n = shifted - 12582912.0f;
    F8 r = x - n * 0.693359375f;
    r = r + n * 2.12194440e-4f;
    F8 p = L(all)(1.9875691500e-4f);
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * (r * r) + r + 1.0f;
    /* the bits of shifted hold n in their lowest; 127 is the bias of an exponent */
    I8 power = (((I8)shifted - 0x4B400000) + 127) << 23;
    return p * (F8)power;
}

INLINE F8 L(exp)(F8 x) { return L(exp_up_to_88)(L(smaller)(L(all)(88.0f), x)); }

/* The largest of eight numbers, none of which is NaN. */
INLINE float L(largest_of_eight)(F8 v) {
#if PK_X86
    __m128 x = _mm_max_ps(_mm256_castps256_ps128((__m256)v), _mm256_extractf128_ps((__m256)v, 1));
    x = _mm_max_ps(x, _mm_movehl_ps(x, x));
    return _mm_cvtss_f32(_mm_max_ss(x, _mm_movehdup_ps(x)));
#else
    float most = v[0];
    for (int j = 1; j < 8; j++) most = v[j] > most ? v[j] : most;
    return most;
#endif
}

INLINE int L(is_any)(I8 mask) {
#if PK_X86
    return _mm256_movemask_ps((__m256)mask) != 0;
#else
    int any = 0;
    for (int j = 0; j < 8; j++) any |= mask[j];
    return any != 0;
#endif
}

/* The largest number, or NaN where there is one. */
INLINE float L(largest)(const float *x, int count) {
    F8 most = L(all)(-INFINITY);
    I8 bad = {0};
    int i = 0;
    for (; i + 8 <= count; i += 8) {
        F8 v = L(load)(x + i);
        most = L(larger)(v, most), bad |= v != v;
    }
    if (i < count) {
        F8 v = L(load_some)(x + i, count - i, -INFINITY);
        most = L(larger)(v, most), bad |= v != v;
    }
    return L(is_any)(bad) ? NAN : L(largest_of_eight)(most);
}

/* The largest of each BLOCK numbers, and of all of them. */
static float L(largest_by_block)(const float *x, int count, float *by_block) {
    float most = -INFINITY;
    for (int from = 0; from < count; from += BLOCK) {
        float own = *by_block++ = L(largest)(x + from, count - from < BLOCK ? count - from : BLOCK);
        if (own > most || own != own) most = own;
        if (most != most) return most;
    }
    return most;
}

/* The sum of exp(x - most); most: no number is larger. */
static float L(sum_of_exps)(const float *x, int count, float most) {
    F8 s = L(all)(0.0f);
    int i = 0;
    for (; i + 8 <= count; i += 8) s += L(exp_up_to_88)(L(load)(x + i) - most);
    if (i < count) {
        F8 v = L(exp_up_to_88)(L(load_some)(x + i, count - i, most) - most);
        s += L(load_some)((float *)&v, count - i, 0.0f);
    }
    return L(sum)(s);
}

/* Eight numbers of 0 to 127 as bytes. */
INLINE void L(store_bytes)(uint8_t *to, I8 whole) {
#if PK_X86
    __m128i words = _mm_packus_epi32(_mm256_castsi256_si128((__m256i)whole), _mm256_extracti128_si256((__m256i)whole, 1));
    _mm_storel_epi64((__m128i *)to, _mm_packus_epi16(words, words));
#else
    for (int j = 0; j < 8; j++) to[j] = (uint8_t)whole[j];
#endif
}

/* Each row as low + step q with q of 7 bits. */
static void L(quantize)(const float *x, int rows, int size, Rows *to) {
    to->size = (size + GROUP - 1) / GROUP * GROUP;
    for (int row = 0; row < rows; row++, x += size) {
        F8 least = L(all)(INFINITY), most = L(all)(-INFINITY);
        int i = 0;
        for (; i + 8 <= size; i += 8) {
            F8 v = L(load)(x + i);
            least = L(smaller)(v, least), most = L(larger)(v, most);
        }
        if (i < size) {
            F8 v = L(load_some)(x + i, size - i, x[i]);
            least = L(smaller)(v, least), most = L(larger)(v, most);
        }
        float low = least[0], high = most[0];
        for (int j = 1; j < 8; j++) {
            if (least[j] < low) low = least[j];
            if (most[j] > high) high = most[j];
        }

        /* 127 divided by a smaller range is no number */
        float range = high - low, inverse = range > 1e-36f ? 127.0f / range : 0.0f;
        to->low[row] = low, to->step[row] = range / 127.0f;
        uint8_t *q = to->q + (size_t)row * (size_t)to->size;
        for (i = 0; i < size; i += 8) {
            F8 v = i + 8 <= size ? L(load)(x + i) : L(load_some)(x + i, size - i, low);
            /* in this order NaN becomes 0 */
            v = L(smaller)(L(larger)((v - low) * inverse, L(all)(0.0f)), L(all)(127.0f));
            L(store_bytes)(q + i, (I8)(v + 12582912.0f) - 0x4B400000);
        }
    }
}

/* (x - mean) / sqrt(variance + eps) · gain + bias for each row. */
static void L(normalize)(const float *x, int rows, int size, const Norm *norm, float eps, float *y) {
    for (int row = 0; row < rows; row++, x += size, y += size) {
        F8 s = L(all)(0.0f);
        int i = 0;
        for (; i + 8 <= size; i += 8) s += L(load)(x + i);
        if (i < size) s += L(load_some)(x + i, size - i, 0.0f);
        float mean = L(sum)(s) / (float)size;

        s = L(all)(0.0f);
        for (i = 0; i + 8 <= size; i += 8) {
            F8 v = L(load)(x + i) - mean;
            s += v * v;
        }
        if (i < size) {
            F8 v = L(load_some)(x + i, size - i, mean) - mean;
            s += v * v;
        }
        float inverse = 1.0f / sqrtf(L(sum)(s) / (float)size + eps);

        for (i = 0; i + 8 <= size; i += 8)
            L(store)(y + i, (L(load)(x + i) - mean) * inverse * L(load)(norm->gain + i) + L(load)(norm->bias + i));
        for (; i < size; i++) y[i] = (x[i] - mean) * inverse * norm->gain[i] + norm->bias[i];
    }
}

static void L(add)(float *x, const float *y, size_t count) {
    for (size_t i = 0; i < count; i++) x[i] += y[i];
}

static void L(activate)(float *x, size_t count, int kind) {
    if (kind == RELU) {
        for (size_t i = 0; i < count; i++) x[i] = x[i] > 0.0f ? x[i] : 0.0f;
        return;
    }
    for (size_t i = 0; i < count; i += 8) { /* x · sigmoid(x) */
        int some = count - i < 8 ? (int)(count - i) : 8;
        F8 v = some == 8 ? L(load)(x + i) : L(load_some)(x + i, some, 0.0f);
        v = v / (L(exp)(-v) + 1.0f);
        memcpy(x + i, &v, (size_t)some * sizeof(float));
    }
}

/* Each pair of features of each head by its angle; table: sines at even places, cosines beside them. */
static void L(rotate)(float *x, int heads, int size, const float *table) {
    for (int head = 0; head < heads; head++, x += size)
        for (int i = 0; i < size; i += 2) {
            float even = x[i], odd = x[i + 1], sine = table[i], cosine = table[i + 1];
            x[i] = even * cosine - odd * sine;
            x[i + 1] = even * sine + odd * cosine;
        }
}

/* The products of a query with eight keys, each summed as dot does. */
INLINE F8 L(eight_dots)(const float *query, const float *const keys[8], int size) {
#if PK_X86
    F8 s[8];
    for (int k = 0; k < 8; k++) s[k] = L(all)(0.0f);
    int i = 0;
    for (; i + 8 <= size; i += 8) {
        F8 q = L(load)(query + i);
#pragma GCC unroll 8
        for (int k = 0; k < 8; k++) s[k] += q * L(load)(keys[k] + i);
    }
    if (i < size) {
        F8 q = L(load_some)(query + i, size - i, 0.0f);
        for (int k = 0; k < 8; k++) s[k] += q * L(load_some)(keys[k] + i, size - i, 0.0f);
    }

    /* (s0 + s4, s1 + s5, s2 + s6, s3 + s7) of two keys in each, then the sums of the halves of these */
    __m256 fours[4], twos[2];
    for (int k = 0; k < 4; k++)
        fours[k] = _mm256_add_ps(_mm256_permute2f128_ps((__m256)s[k], (__m256)s[k + 4], 0x20),
                                 _mm256_permute2f128_ps((__m256)s[k], (__m256)s[k + 4], 0x31));
    for (int k = 0; k < 2; k++)
        twos[k] = _mm256_add_ps(_mm256_shuffle_ps(fours[2 * k], fours[2 * k + 1], 0x44),
                                _mm256_shuffle_ps(fours[2 * k], fours[2 * k + 1], 0xEE));
    return (F8)_mm256_add_ps(_mm256_shuffle_ps(twos[0], twos[1], 0x88), _mm256_shuffle_ps(twos[0], twos[1], 0xDD));
#else
    F8 sums;
    for (int k = 0; k < 8; k++) sums[k] = L(dot)(query, keys[k], size);
    return sums;
#endif
}

/* The numbers of all rows, each times its weight, added in order; so many vectors of eight. */
INLINE void L(weigh)(const float *weights, const float *values, const Seen *seen, int vectors, float *out) {
    F8 s[4];
    for (int j = 0; j < vectors; j++) s[j] = L(all)(0.0f);
    for (int t = 0; t < seen->count; t++) {
        const float *value = values + (size_t)(seen->slots ? seen->slots[t] : t) * seen->value_row;
#pragma GCC unroll 4
        for (int j = 0; j < vectors; j++) s[j] += weights[t] * L(load)(value + 8 * j);
    }
    for (int j = 0; j < vectors; j++) L(store)(out + 8 * j, s[j]);
}

/* softmax(q · K / sqrt(size)) V of all heads for one query. scores: room for count numbers and 7 more. */
static void L(attend)(const float *query, const Seen *seen, int heads, int key_size, int value_size, float *scores, float *out) {
    float divisor = sqrtf((float)key_size);
    int count = seen->count;
    for (int head = 0; head < heads; head++, query += key_size, out += value_size) {
        const float *keys = seen->keys + (size_t)head * seen->key_head, *values = seen->values + (size_t)head * seen->value_head;
        for (int t = 0; t < count; t += 8) {
            const float *eight[8];
            for (int k = 0; k < 8; k++) {
                int key = t + k < count ? t + k : count - 1; /* behind the last one it is read again */
                eight[k] = keys + (size_t)(seen->slots ? seen->slots[key] : key) * seen->key_row;
            }
            L(store)(scores + t, L(eight_dots)(query, eight, key_size) / divisor);
        }

        float most = L(largest)(scores, count);
        F8 s = L(all)(0.0f);
        for (int t = 0; t < count; t += 8) {
            F8 v = L(exp_up_to_88)(L(load)(scores + t) - most);
            if (t + 8 > count) v = L(where)(t + (I8){0, 1, 2, 3, 4, 5, 6, 7} < count, v, L(all)(0.0f));
            s += v;
            L(store)(scores + t, v);
        }
        float inverse = 1.0f / L(sum)(s);
        for (int t = 0; t < count; t += 8) L(store)(scores + t, L(load)(scores + t) * inverse);

        int i = 0;
        for (; i + 32 <= value_size; i += 32) L(weigh)(scores, values + i, seen, 4, out + i);
        for (; i + 8 <= value_size; i += 8) L(weigh)(scores, values + i, seen, 1, out + i);
        for (; i < value_size; i++) {
            out[i] = 0.0f;
            for (int t = 0; t < count; t++) out[i] += scores[t] * values[(size_t)(seen->slots ? seen->slots[t] : t) * seen->value_row + (size_t)i];
        }
    }
}

/* SSRU: f = sigmoid(W_f x + b_f), c <- f c + (1 - f) W x, h = max(0, c). both: W x, then W_f x + b_f. */
static void L(recur)(const float *both, float *c, int size, float *h) {
    for (int i = 0; i < size; i += 8) {
        int some = size - i < 8 ? size - i : 8;
        F8 x = L(load_some)(both + i, some, 0.0f), f = L(load_some)(both + size + i, some, 0.0f);
        F8 old = L(load_some)(c + i, some, 0.0f);
        f = L(all)(1.0f) / (L(exp)(-f) + 1.0f);
        F8 new = f * old + (L(all)(1.0f) - f) * x;
        F8 output = L(where)(new > 0.0f, new, L(all)(0.0f));
        memcpy(c + i, &new, (size_t)some * sizeof(float));
        memcpy(h + i, &output, (size_t)some * sizeof(float));
    }
}

/* The embedding of a word, times a factor, plus the row of its position. */
static void L(look_up)(const Matrix *m, int id, float factor, const float *position, float *x) {
    size_t units = (size_t)m->groups * (GROUP / UNIT);
    const int8_t *unit = m->packed + (size_t)(id / PANEL) * units * UNIT * PANEL + (size_t)(id % PANEL) * UNIT;
    const uint16_t *order = m->order + (size_t)(id / PANEL) * units;
    float scale = m->scales[id] * factor;
    for (size_t at = 0; at < units; at++, unit += UNIT * PANEL) {
        int first = order[at] * UNIT, count = m->inputs - first < UNIT ? m->inputs - first : UNIT;
        for (int i = 0; i < count; i++) x[first + i] = (float)unit[i] * scale + (position ? position[first + i] : 0.0f);
    }
}

/* Eight sums of a row as numbers; first: the output that the first of them belongs to. */
INLINE F8 L(eight)(const int32_t *sums, const Rows *rows, int row, const Matrix *m, int first) {
    I8 s;
    memcpy(&s, sums, sizeof s);
    F8 whole = __builtin_convertvector(s, F8);
    return (whole * rows->step[row] + L(load)(m->sums + first) * rows->low[row]) * L(load)(m->scales + first) +
           L(load)(m->bias + first);
}

/* 16 sums of a row become numbers, or stay sums. left: outputs of this panel. */
INLINE void L(finish)(const int32_t *sums, const Rows *rows, int row, const Matrix *m, int panel, void *out, size_t at,
                      int left, int as_sums) {
    if (as_sums) {
        memcpy((int32_t *)out + at, sums, (size_t)left * sizeof(int32_t));
        return;
    }
    float *to = (float *)out + at;
    for (int half = 0; half < 2; half++, to += 8, left -= 8) {
        F8 result = L(eight)(sums + 8 * half, rows, row, m, panel * PANEL + 8 * half);
        if (left >= 8) L(store)(to, result);
        else if (left > 0) memcpy(to, &result, (size_t)left * sizeof(float));
    }
}

INLINE int32_t L(four)(const uint8_t *from) {
    int32_t bits;
    memcpy(&bits, from, sizeof bits);
    return bits;
}

/* A panel times so many rows, which the compiler knows: their sums stay in registers. */
#if PK_DOT == PK_PLAIN
INLINE void L(tile)(const uint8_t *q, size_t size, int rows, const int8_t *w, const uint16_t *order, int safe, int groups,
                    int32_t sums[TILE][PANEL]) {
    (void)safe;
    for (int row = 0; row < rows; row++) {
        const uint8_t *own = q + (size_t)row * size;
        const int8_t *from = w;
        int32_t all[PANEL] = {0};
        for (int four = 0; four < 2 * groups; four++, from += 4 * PANEL) {
            const uint8_t *a = own + (size_t)order[four] * UNIT;
            for (int o = 0; o < PANEL; o++)
                all[o] += a[0] * from[4 * o] + a[1] * from[4 * o + 1] + a[2] * from[4 * o + 2] + a[3] * from[4 * o + 3];
        }
        memcpy(sums[row], all, sizeof all);
    }
}
#elif PK_DOT == PK_AVX2
INLINE __m256i L(whole)(const int8_t *from) { return _mm256_loadu_si256((const __m256i *)from); }

/* A row alone waits for its weights: 32,000 words of 256 numbers are 8 MB for each token, and the
 * processor's own reading ahead ends with each page of 4,096 bytes. */
INLINE void L(ask_for)(const int8_t *w) { __builtin_prefetch((const void *)((uintptr_t)w + AHEAD)); }

INLINE __m256i L(spread)(const uint8_t *from) { return _mm256_set1_epi32(L(four)(from)); }

/* s + eight products of each output, whose sums of four fit 16 bits: one widening for two of these */
INLINE __m256i L(add_eight)(__m256i s, __m256i a0, __m256i a1, __m256i w0, __m256i w1) {
    __m256i fours = _mm256_add_epi16(_mm256_maddubs_epi16(a0, w0), _mm256_maddubs_epi16(a1, w1));
    return _mm256_add_epi32(s, _mm256_madd_epi16(fours, _mm256_set1_epi16(1)));
}

/* s + four products of each output */
INLINE __m256i L(add_four)(__m256i s, __m256i a, __m256i w) {
    return _mm256_add_epi32(s, _mm256_madd_epi16(_mm256_maddubs_epi16(a, w), _mm256_set1_epi16(1)));
}

/* A row times a group, where sums of four products fit 16 bits: low are the first eight outputs. */
INLINE void L(add_safe)(__m256i *low, __m256i *high, const uint8_t *a0, const uint8_t *a1, const int8_t *w) {
    __m256i x0 = L(spread)(a0), x1 = L(spread)(a1);
    *low = L(add_eight)(*low, x0, x1, L(whole)(w), L(whole)(w + 64));
    *high = L(add_eight)(*high, x0, x1, L(whole)(w + 32), L(whole)(w + 96));
}

INLINE void L(add_careful)(__m256i *low, __m256i *high, const uint8_t *a0, const uint8_t *a1, const int8_t *w) {
    __m256i x0 = L(spread)(a0), x1 = L(spread)(a1);
    *low = L(add_four)(L(add_four)(*low, x0, L(whole)(w)), x1, L(whole)(w + 64));
    *high = L(add_four)(L(add_four)(*high, x0, L(whole)(w + 32)), x1, L(whole)(w + 96));
}

/* The sums have names: as arrays some of them would leave the registers. */
INLINE void L(tile)(const uint8_t *q, size_t size, int rows, const int8_t *w, const uint16_t *order, int safe, int groups,
                    int32_t sums[TILE][PANEL]) {
    __m256i zero = _mm256_setzero_si256(), s0 = zero, s1 = zero, s2 = zero, s3 = zero, t0 = zero, t1 = zero, t2 = zero, t3 = zero;
    const uint8_t *q1 = q + size, *q2 = q1 + size, *q3 = q2 + size;
    int at = 0;
    for (; at < safe; at++, w += GROUP * PANEL, order += 2) {
        size_t a = (size_t)order[0] * UNIT, b = (size_t)order[1] * UNIT;
        if (rows == 1) L(ask_for)(w), L(ask_for)(w + 64);
        L(add_safe)(&s0, &t0, q + a, q + b, w);
        if (rows > 1) L(add_safe)(&s1, &t1, q1 + a, q1 + b, w);
        if (rows > 2) L(add_safe)(&s2, &t2, q2 + a, q2 + b, w);
        if (rows > 3) L(add_safe)(&s3, &t3, q3 + a, q3 + b, w);
    }
    for (; at < groups; at++, w += GROUP * PANEL, order += 2) {
        size_t a = (size_t)order[0] * UNIT, b = (size_t)order[1] * UNIT;
        if (rows == 1) L(ask_for)(w), L(ask_for)(w + 64);
        L(add_careful)(&s0, &t0, q + a, q + b, w);
        if (rows > 1) L(add_careful)(&s1, &t1, q1 + a, q1 + b, w);
        if (rows > 2) L(add_careful)(&s2, &t2, q2 + a, q2 + b, w);
        if (rows > 3) L(add_careful)(&s3, &t3, q3 + a, q3 + b, w);
    }
    __m256i all[4][2] = {{s0, t0}, {s1, t1}, {s2, t2}, {s3, t3}};
    for (int row = 0; row < rows; row++) memcpy(sums[row], all[row], sizeof all[row]);
}
#elif PK_DOT == PK_VNNI
INLINE void L(tile)(const uint8_t *q, size_t size, int rows, const int8_t *w, const uint16_t *order, int safe, int groups,
                    int32_t sums[TILE][PANEL]) {
    (void)safe;
    __m256i s[TILE][2];
    for (int row = 0; row < rows; row++) s[row][0] = s[row][1] = _mm256_setzero_si256();
    for (int g = 0; g < 2 * groups; g++, w += 4 * PANEL) {
        __m256i w0 = _mm256_loadu_si256((const __m256i *)w), w1 = _mm256_loadu_si256((const __m256i *)(w + 32));
        const uint8_t *own = q + (size_t)order[g] * UNIT;
#pragma GCC unroll 4
        for (int row = 0; row < rows; row++) {
            __m256i a = _mm256_set1_epi32(L(four)(own + (size_t)row * size));
            s[row][0] = _mm256_dpbusd_avx_epi32(s[row][0], a, w0);
            s[row][1] = _mm256_dpbusd_avx_epi32(s[row][1], a, w1);
        }
    }
    for (int row = 0; row < rows; row++) memcpy(sums[row], s[row], sizeof s[row]);
}
#elif PK_DOT == PK_VNNI512
INLINE void L(tile)(const uint8_t *q, size_t size, int rows, const int8_t *w, const uint16_t *order, int safe, int groups,
                    int32_t sums[TILE][PANEL]) {
    (void)safe;
    __m512i s[TILE][2]; /* even and odd fours apart: one chain of sums would wait for itself */
    for (int row = 0; row < rows; row++) s[row][0] = s[row][1] = _mm512_setzero_si512();
    for (int g = 0; g < groups; g++, w += GROUP * PANEL) {
        __m512i w0 = _mm512_loadu_si512(w), w1 = _mm512_loadu_si512(w + 64);
#pragma GCC unroll 4
        for (int row = 0; row < rows; row++) {
            const uint8_t *own = q + (size_t)row * size;
            s[row][0] = _mm512_dpbusd_epi32(s[row][0], _mm512_set1_epi32(L(four)(own + (size_t)order[2 * g] * UNIT)), w0);
            s[row][1] = _mm512_dpbusd_epi32(s[row][1], _mm512_set1_epi32(L(four)(own + (size_t)order[2 * g + 1] * UNIT)), w1);
        }
    }
    for (int row = 0; row < rows; row++) _mm512_storeu_si512(sums[row], _mm512_add_epi32(s[row][0], s[row][1]));
}
#elif PK_DOT == PK_NEON
INLINE void L(tile)(const uint8_t *q, size_t size, int rows, const int8_t *w, const uint16_t *order, int safe, int groups,
                    int32_t sums[TILE][PANEL]) {
    (void)safe;
    int32x4_t s[TILE][4];
    for (int row = 0; row < rows; row++)
        for (int i = 0; i < 4; i++) s[row][i] = vdupq_n_s32(0);
    for (int g = 0; g < 2 * groups; g++, w += 4 * PANEL) {
        int8x16_t w0 = vld1q_s8(w), w1 = vld1q_s8(w + 16), w2 = vld1q_s8(w + 32), w3 = vld1q_s8(w + 48);
        const uint8_t *own = q + (size_t)order[g] * UNIT;
        for (int row = 0; row < rows; row++) { /* 7 bits are the same with and without a sign */
            int8x16_t a = vreinterpretq_s8_s32(vdupq_n_s32(L(four)(own + (size_t)row * size)));
            s[row][0] = vdotq_s32(s[row][0], a, w0), s[row][1] = vdotq_s32(s[row][1], a, w1);
            s[row][2] = vdotq_s32(s[row][2], a, w2), s[row][3] = vdotq_s32(s[row][3], a, w3);
        }
    }
    for (int row = 0; row < rows; row++)
        for (int i = 0; i < 4; i++) vst1q_s32(sums[row] + 4 * i, s[row][i]);
}
#endif

/* Rows times the panels first to last. Row i of the result begins at i · stride of out. A panel stays
 * in the first cache while all rows pass it. */
static void L(product)(const Rows *rows, int count, const Matrix *m, int first, int last, void *out, int stride,
                       int as_sums) {
    size_t size = (size_t)rows->size, bytes = (size_t)m->groups * GROUP * PANEL;
    int32_t sums[TILE][PANEL];
    for (int panel = first; panel < last; panel++) {
        const int8_t *w = m->packed + (size_t)panel * bytes;
        int left = m->outputs - panel * PANEL < PANEL ? m->outputs - panel * PANEL : PANEL;
        const uint16_t *order = m->order + (size_t)panel * (size_t)m->groups * (GROUP / UNIT);
        int safe = m->safe[panel];
        for (int row = 0; row < count; row += TILE) {
            const uint8_t *q = rows->q + (size_t)row * size;
            int some = count - row < TILE ? count - row : TILE;
            switch (some) {
                case 4: L(tile)(q, size, 4, w, order, safe, m->groups, sums); break;
                case 3: L(tile)(q, size, 3, w, order, safe, m->groups, sums); break;
                case 2: L(tile)(q, size, 2, w, order, safe, m->groups, sums); break;
                default: L(tile)(q, size, 1, w, order, safe, m->groups, sums);
            }
            for (int i = 0; i < some; i++)
                L(finish)(sums[i], rows, row + i, m, panel, out,
                          (size_t)(row + i) * (size_t)stride + (size_t)(panel - first) * PANEL, left, as_sums);
        }
    }
}

/* A panel times one row. */
INLINE void L(one)(const Rows *row, const Matrix *m, int panel, F8 result[2]) {
    int32_t sums[TILE][PANEL];
    L(tile)(row->q, (size_t)row->size, 1, m->packed + (size_t)panel * ((size_t)m->groups * GROUP * PANEL),
            m->order + (size_t)panel * (size_t)m->groups * (GROUP / UNIT), m->safe[panel], m->groups, sums);
    for (int half = 0; half < 2; half++) result[half] = L(eight)(sums[0] + 8 * half, row, 0, m, panel * PANEL + 8 * half);
}

/* The largest number of a row in each panel. */
static void L(guess)(const Rows *row, const Matrix *m, float *largest) {
    for (int panel = 0; panel < m->panels; panel++) {
        F8 own[2];
        L(one)(row, m, panel, own);
        for (int i = m->outputs - panel * PANEL; i < PANEL; i++) own[i / 8][i % 8] = -INFINITY;
        largest[panel] = L(largest_of_eight)(L(larger)(own[0], own[1]));
    }
}

/* The first index of a largest number; 0 where all are NaN. */
static int L(largest_index)(const float *x, int count) {
    F8 most = L(all)(-INFINITY);
    int i = 0;
    for (; i + 8 <= count; i += 8) most = L(larger)(L(load)(x + i), most);
    float largest = L(largest_of_eight)(most);
    for (; i < count; i++) largest = x[i] > largest ? x[i] : largest;
    for (i = 0; i < count; i++)
        if (x[i] == largest) return i;
    return 0;
}

/* The numbers of a row in some panels (panel of the list, 16). */
static void L(some_panels)(const Rows *row, const Matrix *m, const int *panels, int count, float *out) {
    for (int i = 0; i < count; i++) {
        F8 own[2];
        L(one)(row, m, panels[i], own);
        memcpy(out + (size_t)i * PANEL, own, sizeof own);
    }
}

#define PK_TEXT2(x) #x
#define PK_TEXT(x) PK_TEXT2(x)
static const Leaves L(leaves) = {
    PK_TEXT(PK_LEAVES), L(product), L(quantize), L(normalize), L(add),     L(activate),   L(rotate),
    L(attend),          L(recur),   L(look_up),  L(largest_by_block), L(sum_of_exps), L(guess),
    L(largest_index),   L(some_panels),
};
#undef PK_TEXT
#undef PK_TEXT2
#undef PK_X86

#endif
