/* The cells by their numbers in tables.h. A row there without a file here does not compile. */
#define LIST_VARIANTS(cell, ...) [PYRNNX_##cell] = NAME(cell##_variants),
static const NAME(variant) *const NAME(cells)[] = {PYRNNX_CELLS(LIST_VARIANTS)};

INLINE const NAME(variant) *NAME(variant_of)(const pyrnnx_parameters *p) { return &NAME(cells)[p->cell][p->variant]; }
static int NAME(gate_count)(const pyrnnx_parameters *p) { return NAME(variant_of)(p)->gate_count; }
static int NAME(phases)(const pyrnnx_parameters *p) { return NAME(variant_of)(p)->phases; }
