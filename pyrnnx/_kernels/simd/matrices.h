/* The processor's eight matrices (AMX) of 16 rows of 64 bytes: 0 to 3 for sums, 4 and 5 for rows, 6 and 7 for
 * weights. */
#ifndef PYRNNX_MATRICES
#define PYRNNX_MATRICES
#include <string.h> /* memcpy */
#ifdef PYRNNX_HAVE_AMX
#include <sys/syscall.h>
#include <unistd.h> /* syscall */
/* gcc does not know that these instructions read and write memory. */
#define SEES_MEMORY __asm__ volatile("" ::: "memory")
#endif
enum { MATRIX_ROWS = 16, MATRIX_BYTES = 64 };

/* The operand of ldtilecfg; unused matrices have no rows. */
typedef struct {
    unsigned char palette, start_row, unused[14];
    unsigned short row_bytes[16];
    unsigned char rows[16];
} matrix_shapes;

static inline matrix_shapes shapes_of(ptrdiff_t rows) { /* at most 32 */
    const unsigned char upper = (unsigned char)(rows < MATRIX_ROWS ? rows : MATRIX_ROWS);
    const unsigned char all[] = {upper, upper, 0, 0, upper, 0, MATRIX_ROWS, MATRIX_ROWS};
    matrix_shapes shapes = {.palette = 1};
    memcpy(shapes.rows, all, sizeof all);
    shapes.rows[2] = shapes.rows[3] = shapes.rows[5] = (unsigned char)(rows - upper);
    for (int k = 0; k < 8; k++) shapes.row_bytes[k] = shapes.rows[k] ? MATRIX_BYTES : 0;
    return shapes;
}

#ifdef PYRNNX_HAVE_AMX
/* Return whether Linux permits matrices, which a process must request. */
static inline int matrices_allowed(void) {
    enum { REQUEST_PERMISSION = 0x1023, MATRIX_DATA = 18 };
    return syscall(SYS_arch_prctl, REQUEST_PERMISSION, MATRIX_DATA) == 0;
}
#endif
#endif
