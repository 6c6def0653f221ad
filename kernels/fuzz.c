/* Opens and searches random models, most of sizes that fit and some that do not, with every set of
 * instructions that the processor has: run under sanitizers, it ends with the first wrong access,
 * overflow or leak, and with the first number that two sets do not share. Two processors share all of
 * them if the checksum that it prints is the same.
 *
 *     python kernels/build.py fuzz --fuzzer && ./fuzz 1000 0        (models, first seed)
 */
#include "pellucid_kernels/kernels.c"

#include <stdio.h>

static uint64_t state;

static uint32_t draw(void) { /* xorshift64* */
    state ^= state >> 12, state ^= state << 25, state ^= state >> 27;
    return (uint32_t)((state * 2685821657736338717ull) >> 32);
}
static int between(int least, int most) { return least + (int)(draw() % (uint32_t)(most - least + 1)); }
static float number(void) { return (float)(int32_t)draw() / 2147483648.0f; }
static int rarely(int one_in) { return draw() % (uint32_t)one_in == 0; }

static int32_t hostile(void) {
    static const int32_t all[] = {0, -1, 1, INT32_MAX, INT32_MIN, 1 << 16, (1 << 16) + 1, 1 << 20, 1 << 30, -4096};
    return all[draw() % (sizeof all / sizeof *all)];
}

static void *kept[4096];
static int kept_count;
static void *room(size_t bytes) { /* exactly as large as said, so that one byte more is noticed */
    void *memory = malloc(bytes ? bytes : 1);
    if (!memory || kept_count == 4096) abort();
    return kept[kept_count++] = memory;
}

static pk_tensor tensors[256];
static int tensor_count;

static float *numbers(int64_t count, float factor) {
    float *all = room((size_t)count * sizeof(float));
    for (int64_t i = 0; i < count; i++) all[i] = number() * factor;
    return all;
}

static void matrix(int outputs, int inputs) {
    int8_t *rows = room((size_t)outputs * (size_t)inputs);
    int kind = between(0, 3), most = kind == 3 ? 127 : kind == 2 ? 40 : 127;
    for (size_t i = 0; i < (size_t)outputs * (size_t)inputs; i++)
        rows[i] = (int8_t)(kind == 3 ? (rarely(2) ? 127 : -127) : between(-most, most));
    pk_tensor *t = &tensors[tensor_count++];
    *t = (pk_tensor){rows, numbers(outputs, 0.02f), rarely(2) ? numbers(outputs, 1.0f) : NULL, outputs, inputs};
}

static void plain(int64_t count) { tensors[tensor_count++] = (pk_tensor){NULL, numbers(count, 1.0f), NULL, count, 0}; }

static void layer(const pk_sizes *s, int is_decoder) {
    int keys = s->heads * s->key_size, values = s->heads * s->value_size, d = s->d_model;
    if (is_decoder && s->decoder == SSRU) matrix(2 * d, d);
    else matrix(2 * keys + values, d), matrix(d, values);
    plain(d), plain(d);
    if (is_decoder) matrix(keys, d), matrix(keys + values, d), matrix(d, values), plain(d), plain(d);
    matrix(s->d_ff, d), matrix(d, s->d_ff), plain(d), plain(d);
}

static pk_sizes sizes_of_a_model(void) {
    pk_sizes s = {.d_model = between(1, 40), .d_ff = between(1, 60), .heads = between(1, 4), .key_size = 2 * between(1, 6),
                  .value_size = between(1, 12), .encoder_layers = between(0, 2), .decoder_layers = between(1, 2),
                  .source_words = between(4, 60), .target_words = rarely(6) ? between(1000, 2100) : between(4, 90),
                  .position_kind = between(0, 2), .activation = between(0, 1), .decoder = between(0, 1),
                  .pre_norm = between(0, 1), .norm_eps = 1e-6f, .embedding_scale = 4.0f};
    s.position_count = s.position_kind ? between(8, 50) : 0;
    tensor_count = 0;
    if (s.position_kind) plain((int64_t)s.position_count * (s.position_kind == ROTARY ? s.key_size : s.d_model));
    matrix(s.source_words, s.d_model);
    if (rarely(8)) s.target_words = s.source_words;
    s.target_is_source = s.source_words == s.target_words && rarely(2), s.output_is_target = rarely(2), s.start_is_zero = rarely(2);
    if (!s.target_is_source) matrix(s.target_words, s.d_model);
    if (!s.output_is_target) matrix(s.target_words, s.d_model);
    for (int i = 0; i < s.encoder_layers; i++) layer(&s, 0);
    for (int i = 0; i < s.decoder_layers; i++) layer(&s, 1);
    if (s.pre_norm) plain(s.d_model), plain(s.d_model), plain(s.d_model), plain(s.d_model);
    s.axes = rarely(2) ? 0 : between(1, s.d_model);
    if (s.axes) matrix(s.axes, s.d_model), matrix(s.target_words, s.axes); /* guesses of no use, so most are taken back */
    return s;
}

/* The model as a packed block, which is exactly as large as it must be; NULL where it is refused. */
static uint8_t *pack_all(const pk_sizes *sizes, int tensors_given, int64_t *bytes) {
    int32_t needed;
    if (pk_measure(sizes, bytes, &needed) || *bytes > 1 << 26) return NULL;
    uint8_t *block = room((size_t)*bytes);
    memset(block, 0, (size_t)*bytes);
    for (int i = 0; i < tensors_given; i++)
        if (pk_pack(sizes, block, *bytes, i, &tensors[i])) return NULL;
    return tensors_given < needed ? NULL : block;
}

/* One number of a structure becomes another. */
static void spoil(void *structure, size_t fields) { ((int32_t *)structure)[draw() % fields] = hostile(); }

static int searched, refused, not_finite;
static uint64_t checksum = 14695981039346656037ull;

static void count_in(const void *bytes, size_t size) { /* FNV-1a */
    for (size_t i = 0; i < size; i++) checksum = (checksum ^ ((const uint8_t *)bytes)[i]) * 1099511628211ull;
}

static int guessed, taken_back;

/* Whether the same model gives other results without its shortlist: so many hypotheses with room for all
 * these tokens. */
static int is_other_without(const pk_sizes *sizes, uint8_t *block, const char *name, const pk_request *asked, int error,
                            const pk_result *result, size_t results, size_t tokens) {
    pk_sizes without = *sizes;
    without.axes = 0;
    int64_t bytes;
    int32_t count;
    pk_model *model;
    if (pk_measure(&without, &bytes, &count) || pk_open(&without, block, bytes, name, &model)) abort();
    pk_result again = {calloc(tokens, 4), calloc(tokens, 4), calloc(results, 4), NULL, NULL};
    int is_other = pk_search(model, asked, &again) != error;
    pk_close(model);
    is_other |= memcmp(again.ids, result->ids, tokens * 4) || memcmp(again.log_probs, result->log_probs, tokens * 4) ||
                memcmp(again.sizes, result->sizes, results * 4);
    free(again.ids), free(again.log_probs), free(again.sizes);
    return is_other;
}

int main(int count, char **arguments) {
    int models = count > 1 ? atoi(arguments[1]) : 200;
    uint64_t seed = count > 2 ? strtoull(arguments[2], NULL, 10) : 0;
    for (int number_of = 0; number_of < models; number_of++) {
        state = (seed + (uint64_t)number_of + 1) * 0x9E3779B97F4A7C15ull;
        pk_sizes s = sizes_of_a_model(), opened_as = s;
        int tensors_given = tensor_count;
        if (rarely(4)) spoil(&opened_as, 18);
        if (rarely(8)) tensors_given = between(0, tensor_count);
        if (rarely(8)) tensors[between(0, tensor_count - 1)].outputs += between(-2, 2);
        if (rarely(8)) tensors[between(0, tensor_count - 1)].inputs = hostile();
        if (rarely(16)) tensors[between(0, tensor_count - 1)].scales = NULL;

        /* the request */
        int sentences = rarely(2) ? 1 : between(1, 5), beam = rarely(2) ? 1 : between(1, 6), n_best = between(1, beam);
        int most = between(0, 60), sources = 0;
        int32_t *source_sizes = room((size_t)sentences * 4), *limits = room((size_t)sentences * 4);
        for (int i = 0; i < sentences; i++) {
            source_sizes[i] = between(1, 9), limits[i] = between(0, most), sources += source_sizes[i];
            if (s.position_kind && limits[i] >= s.position_count && !rarely(8)) limits[i] = s.position_count - 1;
        }
        int32_t *source = room((size_t)sources * 4), *forced = NULL;
        for (int i = 0; i < sources; i++) source[i] = between(0, s.source_words - 1);
        if (beam == 1 && rarely(3)) {
            forced = room((size_t)sentences * (size_t)most * 4);
            for (int i = 0; i < sentences * most; i++) forced[i] = between(0, s.target_words - 1);
            if (most && rarely(6)) forced[0] = hostile();
        }
        if (rarely(12)) source[between(0, sources - 1)] = hostile();
        if (rarely(12)) limits[between(0, sentences - 1)] = hostile();
        float *penalties = room(((size_t)most + 3) * sizeof(float));
        for (int i = 0; i < most + 3; i++) penalties[i] = 1.0f + 0.1f * (float)i;
        pk_request request = {.sentences = sentences, .beam = beam, .kept = between(n_best, beam), .n_best = n_best,
                              .pad = 0, .bos = 2, .eos = 3, .bound = between(0, 2), .free_stop = between(0, 1),
                              .most = most, .enough = beam * between(1, 3), .source = source,
                              .source_sizes = source_sizes, .limits = limits, .penalties = penalties, .forced = forced};
        pk_request asked = request;
        if (rarely(6)) { /* never the number of sentences: arrays have no size of their own */
            int32_t *fields[] = {&asked.beam, &asked.kept, &asked.n_best, &asked.pad, &asked.bos, &asked.eos, &asked.bound};
            *fields[draw() % 7] = hostile();
        }
        size_t results = (size_t)sentences * (size_t)beam;

        int64_t bytes;
        uint8_t *block = pack_all(&opened_as, tensors_given, &bytes);
        int is_damaged = block && rarely(6); /* as a file may be: then two sets need not agree */
        for (int i = 0; is_damaged && i < 100; i++) block[draw() % (uint64_t)bytes] = (uint8_t)draw();
        if (rarely(20)) bytes += between(-1, 1);

        int32_t *first_ids = NULL, *first_sizes = NULL;
        float *first_log_probs = NULL;
        const char *name;
        for (int i = 0; (name = pk_instructions(i)); i++) {
            pk_model *model;
            int error = block ? pk_open(&opened_as, block, bytes, name, &model) : BAD_SIZES;
            if (error) {
                if (block && model) abort();
                refused++;
                continue;
            }
            int32_t *ids = room(results * ((size_t)most + 1) * 4), *lengths = room(results * 4);
            float *log_probs = room(results * ((size_t)most + 1) * 4);
            memset(ids, 0, results * ((size_t)most + 1) * 4), memset(log_probs, 0, results * ((size_t)most + 1) * 4);
            memset(lengths, 0, results * 4);
            float *states = asked.beam != 1 || rarely(2) ? NULL : room(results * ((size_t)most + 1) * (size_t)opened_as.d_model * 4);
            int32_t counts[3] = {0};
            pk_result result = {ids, log_probs, lengths, states, rarely(2) ? counts : NULL};
            error = pk_search(model, &asked, &result);
            pk_close(model);
            guessed += counts[0], taken_back += counts[1];
            if (opened_as.axes && is_other_without(&opened_as, block, name, &asked, error, &result, results, results * ((size_t)most + 1))) {
                fprintf(stderr, "seed %d: %s gives other numbers with its shortlist\n", number_of, name);
                return 1;
            }
            if (error == BAD_REQUEST) refused++;
            else if (error == NOT_FINITE) not_finite++;
            else if (error) abort();
            else searched++;
            if (is_damaged) continue;
            if (!first_ids) first_ids = ids, first_sizes = lengths, first_log_probs = log_probs;
            else if (memcmp(first_ids, ids, results * ((size_t)most + 1) * 4) || memcmp(first_sizes, lengths, results * 4) ||
                     memcmp(first_log_probs, log_probs, results * ((size_t)most + 1) * 4)) {
                fprintf(stderr, "seed %d: %s gives other numbers\n", number_of, name);
                return 1;
            }
        }
        if (first_ids) {
            count_in(first_ids, results * ((size_t)most + 1) * 4), count_in(first_sizes, results * 4);
            count_in(first_log_probs, results * ((size_t)most + 1) * 4);
        }
        while (kept_count) free(kept[--kept_count]);
    }
    printf("%d searches, %d refused, %d not finite, %d guessed, %d taken back, checksum %016llx\n", searched, refused,
           not_finite, guessed, taken_back, (unsigned long long)checksum);
    return searched > models / 3 ? 0 : 1;
}
