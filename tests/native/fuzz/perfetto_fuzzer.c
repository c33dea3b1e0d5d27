/* A target for libFuzzer: reads any bytes as packets of Perfetto, and writes them as text. See README.md. */

#include <stdlib.h>

#include "perfetto.h"

enum { PART = 1 << 10 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    Perfetto trace = {0};
    if (read_packets(&trace, (Slice){data, size}) == SCANNED) {
        size_t length;
        do {
            Text text = {0};
            write_text(&trace, &text, PART);
            length = text.length;
            free(text.at);
        } while (length > 0);
    }
    perfetto_free(&trace);
    return 0;
}
