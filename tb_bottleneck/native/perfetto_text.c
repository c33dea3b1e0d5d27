#include "perfetto_parts.h"

enum { MAX_NESTED = 8 };

/* --- Annotations of slices --- */

Slice annotation_name(const Perfetto *trace, uint64_t sequence, Slice message) {
    Cursor cursor = cursor_of(message);
    Field field;
    while (read_field(&cursor, &field)) {
        if (field.number == 1) return text_at(trace, name_of(&trace->names, sequence, ANNOTATION_NAME, field.value));
        if (field.number == 10) return field.bytes;
    }
    return (Slice){0};
}

void put_annotation(Text *text, const Perfetto *trace, uint64_t sequence, Slice message, int depth) {
    Cursor cursor = cursor_of(message);
    Field field;
    double number;
    char open = 0;
    bool first = true, written = false;
    while (depth < MAX_NESTED && !text->failed && read_field(&cursor, &field)) {
        written = true;
        switch (field.number) {
            case 2: put(text, field.value ? "true" : "false", field.value ? 4 : 5); return;
            case 3: case 7: put_unsigned(text, field.value); return;
            case 4: put_integer(text, (int64_t)field.value); return;
            case 5: memcpy(&number, &field.value, sizeof number); put_double(text, number); return;
            case 6: put_string(text, field.bytes); return;
            case 9: put_text_value(text, field.bytes); return;
            case 17: put_string(text, text_at(trace, name_of(&trace->names, sequence, STRING_VALUE, field.value))); return;
            case 11: case 12:
                if (open == 0) {
                    open = field.number == 11 ? '{' : '[';
                    put(text, &open, 1);
                }
                if (open == '{') put_key(text, annotation_name(trace, sequence, field.bytes), &first);
                else if (!first) PUT(text, ",");
                first = false;
                put_annotation(text, trace, sequence, field.bytes, depth + 1);
                break;
            default: written = false; break;
        }
    }
    if (open != 0) put(text, open == '{' ? "}" : "]", 1);
    else if (!written) PUT(text, "[]"); /* torch writes an empty list as no value */
}

bool is_wanted(Slice name) { return argument_of(name) != KEY_UNKNOWN; }

static void put_annotations(Text *text, const Perfetto *trace, const Item *item) {
    Cursor cursor = cursor_of(text_at(trace, item->message));
    Field field;
    bool first = true;
    PUT(text, ",\"args\":{");
    while (read_field(&cursor, &field)) {
        if (field.number != 4 || field.type != BYTES) continue;
        Slice name = annotation_name(trace, item->sequence, field.bytes);
        if (!is_wanted(name)) continue;
        put_key(text, name, &first);
        put_annotation(text, trace, item->sequence, field.bytes, 0);
    }
    PUT(text, "}");
}

/* --- Arguments of render stages --- */

/* The names that the JSON of torch has for an argument. */
static Slice json_name(Slice name) {
    if (IS(name, "device id")) return KEY("device");
    if (IS(name, "context id")) return KEY("context");
    if (IS(name, "stream id")) return KEY("stream");
    if (IS(name, "registers_per_thread")) return KEY("registers per thread");
    return name;
}

Slice extra_of(Slice message, Slice *value) {
    Cursor cursor = cursor_of(message);
    Field field;
    Slice name = {0};
    *value = (Slice){0};
    while (read_field(&cursor, &field)) {
        if (field.number == 1) name = field.bytes;
        if (field.number == 2) *value = field.bytes;
    }
    return json_name(name);
}

static void put_extra(Text *text, Slice message, bool *first) {
    Slice value, name = extra_of(message, &value);
    if (!is_wanted(name)) return;
    put_key(text, name, first);
    put_text_value(text, value);
}

void read_sides(Slice message, uint64_t sides[3]) {
    Cursor cursor = cursor_of(message);
    Field field;
    sides[0] = sides[1] = sides[2] = 1;
    while (read_field(&cursor, &field)) {
        if (field.number >= 1 && field.number <= 3) sides[field.number - 1] = field.value;
    }
}

static void put_dimensions(Text *text, Slice message) {
    uint64_t sides[3];
    read_sides(message, sides);
    for (int side = 0; side < 3; side++) {
        put(text, side == 0 ? "[" : ",", 1);
        put_unsigned(text, sides[side]);
    }
    PUT(text, "]");
}

Slice launch_name(const Perfetto *trace, uint64_t sequence, Slice message) {
    Cursor cursor = cursor_of(message);
    Field field;
    Slice name = {0};
    while (read_field(&cursor, &field)) {
        if (field.number == 1) name = text_at(trace, name_of(&trace->names, sequence, ARGUMENT_NAME, field.value));
        if (field.number == 2) name = field.bytes;
    }
    return json_name(name);
}

void put_launch_value(Text *text, Slice message) {
    Cursor cursor = cursor_of(message);
    Field field;
    double number;
    while (read_field(&cursor, &field)) {
        switch (field.number) {
            case 1: case 2: break;
            case 3: put_integer(text, (int64_t)field.value); return;
            case 4: put_unsigned(text, field.value); return;
            case 5: memcpy(&number, &field.value, sizeof number); put_double(text, number); return;
            case 6: put_string(text, field.bytes); return;
            default: PUT(text, "null"); return;
        }
    }
    PUT(text, "null");
}

static void put_launch(Text *text, const Perfetto *trace, uint64_t sequence, Slice message, bool *first) {
    Cursor cursor = cursor_of(message);
    Field field;
    while (read_field(&cursor, &field)) {
        Slice name = field.number == 1 ? KEY("grid") : launch_name(trace, sequence, field.bytes);
        if ((field.number != 1 && field.number != 3) || !is_wanted(name)) continue;
        put_key(text, name, first);
        if (field.number == 3) put_launch_value(text, field.bytes);
        else put_dimensions(text, field.bytes);
    }
}

Slice stage_category(Slice stage) {
    if (IS(stage, "Kernel")) return KEY("kernel");
    if (IS(stage, "Memcpy")) return KEY("gpu_memcpy");
    if (IS(stage, "Memset")) return KEY("gpu_memset");
    if (IS(stage, "Annotation")) return KEY("gpu_user_annotation");
    return stage;
}

Slice stream_of(const Perfetto *trace, const Item *item) {
    Cursor cursor = cursor_of(text_at(trace, item->message));
    Field field;
    Slice value, stream = KEY("0");
    while (read_field(&cursor, &field)) {
        if (field.number != 6) continue;
        Slice name = extra_of(field.bytes, &value);
        if (IS(name, "stream") && value.length > 0) stream = value;
    }
    return stream;
}

/* Writes the arguments of a render stage, and its device and stream as process and thread. */
static void put_stage(Text *text, const Perfetto *trace, const Item *item) {
    Cursor cursor = cursor_of(text_at(trace, item->message));
    Field field;
    bool first = true;
    PUT(text, ",\"args\":{");
    while (read_field(&cursor, &field)) {
        if (field.number == 6) put_extra(text, field.bytes, &first);
        if (field.number == 21) put_launch(text, trace, item->sequence, field.bytes, &first);
    }
    PUT(text, "},\"pid\":");
    put_integer(text, item->device);
    PUT(text, ",\"tid\":");
    put_text_value(text, stream_of(trace, item));
}

/* --- Events --- */

static void put_name(Text *text, const char *phase, Slice category, Slice name) {
    PUT(text, "{\"ph\":\"");
    put(text, phase, 1);
    PUT(text, "\",\"cat\":");
    put_string(text, category);
    PUT(text, ",\"name\":");
    put_string(text, name);
}

void put_dependency(Text *text, const Perfetto *trace, const Item *item, Slice stream, bool is_begin, uint64_t number) {
    put_name(text, is_begin ? "s" : "f", KEY("ac2g"), KEY("ac2g"));
    PUT(text, ",\"id\":");
    put_unsigned(text, number);
    PUT(text, ",\"ts\":");
    put_time(text, (is_begin ? item->end : item->start) - trace->base);
    PUT(text, ",\"pid\":");
    put_integer(text, item->device);
    PUT(text, ",\"tid\":");
    put_text_value(text, stream);
    PUT(text, "}");
}

const Track *process_of(const Perfetto *trace, const Track *track) {
    const Track *parent = track->is_thread || track->is_process ? NULL : find_track(trace, track->parent);
    return parent == NULL ? track : parent;
}

int64_t thread_of(const Track *track) {
    return track->is_thread || track->is_process ? track->thread : (int64_t)(track->uuid & INT32_MAX);
}

static void put_place(Text *text, const Perfetto *trace, const Track *track) {
    PUT(text, ",\"pid\":");
    put_integer(text, process_of(trace, track)->process);
    PUT(text, ",\"tid\":");
    put_integer(text, thread_of(track));
}

void put_item(Text *text, const Perfetto *trace, const Item *item) {
    bool on_device = item->phase == STAGE;
    put_name(text, item->phase == COUNTER ? "C" : item->phase == INSTANT ? "i" : "X",
             on_device ? stage_category(text_at(trace, item->category)) : text_at(trace, item->category),
             text_at(trace, item->name));
    PUT(text, ",\"ts\":");
    put_time(text, item->start - trace->base);
    if (item->phase == BEGIN || on_device) {
        PUT(text, ",\"dur\":");
        put_time(text, item->end < item->start ? 0 : item->end - item->start);
    }
    if (item->phase == COUNTER) {
        PUT(text, ",\"pid\":\"GPU ");
        put_integer(text, item->device);
        PUT(text, " Counters\",\"args\":{\"\":");
        put_double(text, item->value);
        PUT(text, "}");
    } else if (on_device) {
        put_stage(text, trace, item);
    } else {
        put_place(text, trace, &trace->tracks[item->track]);
        put_annotations(text, trace, item);
    }
    PUT(text, "}");
}

static bool names_process(const Track *track) { return track->is_process && !track->is_thread; }

Part track_name(const Track *track) {
    Part own = names_process(track) ? track->process_name : track->thread_name;
    return own.length > 0 ? own : track->name;
}

void put_track(Text *text, const Perfetto *trace, const Track *track) {
    PUT(text, "{\"ph\":\"M\",\"name\":");
    put_string(text, names_process(track) ? KEY("process_name") : KEY("thread_name"));
    PUT(text, ",\"ts\":0.0");
    put_place(text, trace, track);
    PUT(text, ",\"args\":{\"name\":");
    put_string(text, text_at(trace, track_name(track)));
    PUT(text, "}}");
}

/* Further top-level keys: name = 1, string = 2, bool = 3, int = 4, JSON = 5 of ChromeMetadata. */
static void put_fact(Text *text, Slice message, bool *first) {
    Cursor cursor = cursor_of(message);
    Field field;
    Slice name = {0};
    while (read_field(&cursor, &field)) {
        if (field.number == 1) name = field.bytes;
        if (field.number < 2 || field.number > 5) continue;
        put_key(text, name, first);
        switch (field.number) {
            case 2: put_string(text, field.bytes); return;
            case 3: put(text, field.value ? "true" : "false", field.value ? 4 : 5); return;
            case 4: put_integer(text, (int64_t)field.value); return;
            default: put_text_value(text, field.bytes); return;
        }
    }
}

void put_head(Text *text, const Perfetto *trace) {
    bool first = true;
    PUT(text, "{");
    for (size_t number = 0; number < trace->fact_count; number++) put_fact(text, text_at(trace, trace->facts[number]), &first);
    put_key(text, KEY("baseTimeNanoseconds"), &first);
    put_integer(text, trace->base);
    put_key(text, KEY("traceEvents"), &first);
    PUT(text, "[\n");
}
