#include "perfetto.h"

enum { MAX_NESTED = 8 };

/* --- Annotations of slices --- */

static Slice annotation_name(const Perfetto *trace, uint64_t sequence, Slice message) {
    Cursor cursor = cursor_of(message);
    Field field;
    while (read_field(&cursor, &field)) {
        if (field.number == 1) return name_of(&trace->names, sequence, ANNOTATION_NAME, field.value);
        if (field.number == 10) return field.bytes;
    }
    return (Slice){0};
}

/* Writes the value of a DebugAnnotation. */
static void put_annotation(Text *text, const Perfetto *trace, uint64_t sequence, Slice message, int depth) {
    Cursor cursor = cursor_of(message);
    Field field;
    double number;
    char open = 0;
    bool first = true, written = false;
    while (depth < MAX_NESTED && read_field(&cursor, &field)) {
        written = true;
        switch (field.number) {
            case 2: put(text, field.value ? "true" : "false", field.value ? 4 : 5); return;
            case 3: case 7: put_unsigned(text, field.value); return;
            case 4: put_integer(text, (int64_t)field.value); return;
            case 5: memcpy(&number, &field.value, sizeof number); put_double(text, number); return;
            case 6: put_string(text, field.bytes); return;
            case 9: put_text_value(text, field.bytes); return;
            case 17: put_string(text, name_of(&trace->names, sequence, STRING_VALUE, field.value)); return;
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

/* Returns true if an argument of this name is written. */
static bool is_wanted(const Perfetto *trace, Slice name) {
    for (size_t number = 0; number < trace->wanted_count; number++) {
        Slice wanted = trace->wanted[number];
        if (wanted.length == name.length && memcmp(wanted.at, name.at, name.length) == 0) return true;
    }
    return trace->wanted_count == 0;
}

static void put_annotations(Text *text, const Perfetto *trace, const Item *item) {
    Cursor cursor = cursor_of(item->message);
    Field field;
    bool first = true;
    PUT(text, ",\"args\":{");
    while (read_field(&cursor, &field)) {
        if (field.number != 4 || field.type != BYTES) continue;
        Slice name = annotation_name(trace, item->sequence, field.bytes);
        if (!is_wanted(trace, name)) continue;
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

static Slice put_extra(Text *text, const Perfetto *trace, Slice message, bool *first) {
    Cursor cursor = cursor_of(message);
    Field field;
    Slice name = {0}, value = {0};
    while (read_field(&cursor, &field)) {
        if (field.number == 1) name = field.bytes;
        if (field.number == 2) value = field.bytes;
    }
    name = json_name(name);
    if (is_wanted(trace, name)) {
        put_key(text, name, first);
        put_text_value(text, value);
    }
    return IS(name, "stream") ? value : (Slice){0};
}

static void put_dimensions(Text *text, Slice message) {
    Cursor cursor = cursor_of(message);
    Field field;
    uint64_t sides[3] = {1, 1, 1};
    while (read_field(&cursor, &field)) {
        if (field.number >= 1 && field.number <= 3) sides[field.number - 1] = field.value;
    }
    for (int side = 0; side < 3; side++) {
        put(text, side == 0 ? "[" : ",", 1);
        put_unsigned(text, sides[side]);
    }
    PUT(text, "]");
}

static void put_launch_argument(Text *text, const Perfetto *trace, uint64_t sequence, Slice message, bool *first) {
    Cursor cursor = cursor_of(message);
    Field field;
    Slice name = {0};
    double number;
    while (read_field(&cursor, &field)) {
        if (field.number == 1) name = name_of(&trace->names, sequence, ARGUMENT_NAME, field.value);
        if (field.number == 2) name = field.bytes;
        if (field.number < 3) continue;
        if (!is_wanted(trace, json_name(name))) return;
        put_key(text, json_name(name), first);
        switch (field.number) {
            case 3: put_integer(text, (int64_t)field.value); return;
            case 4: put_unsigned(text, field.value); return;
            case 5: memcpy(&number, &field.value, sizeof number); put_double(text, number); return;
            case 6: put_string(text, field.bytes); return;
            default: PUT(text, "null"); return;
        }
    }
}

static void put_launch(Text *text, const Perfetto *trace, uint64_t sequence, Slice message, bool *first) {
    Cursor cursor = cursor_of(message);
    Field field;
    while (read_field(&cursor, &field)) {
        Slice name = field.number == 1 ? KEY("grid") : KEY("block");
        if (field.number <= 2 && is_wanted(trace, name)) {
            put_key(text, name, first);
            put_dimensions(text, field.bytes);
        }
        if (field.number == 3) put_launch_argument(text, trace, sequence, field.bytes, first);
    }
}

static Slice stage_category(Slice stage) {
    if (IS(stage, "Kernel")) return KEY("kernel");
    if (IS(stage, "Memcpy")) return KEY("gpu_memcpy");
    if (IS(stage, "Memset")) return KEY("gpu_memset");
    if (IS(stage, "Annotation")) return KEY("gpu_user_annotation");
    return stage;
}

/* Writes the arguments of a render stage, and its stream as the thread. */
static void put_stage(Text *text, const Perfetto *trace, const Item *item) {
    Cursor cursor = cursor_of(item->message);
    Field field;
    bool first = true;
    Slice stream = {0};
    PUT(text, ",\"args\":{");
    while (read_field(&cursor, &field)) {
        if (field.number == 6) {
            Slice found = put_extra(text, trace, field.bytes, &first);
            if (found.length > 0) stream = found;
        }
        if (field.number == 21) put_launch(text, trace, item->sequence, field.bytes, &first);
    }
    PUT(text, "},\"pid\":");
    put_integer(text, item->device);
    PUT(text, ",\"tid\":");
    put_text_value(text, stream.length > 0 ? stream : KEY("0"));
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

/* The track itself, or its parent if it is neither of a process nor of a thread. */
static const Track *process_of(const Perfetto *trace, const Track *track) {
    const Track *parent = track->is_thread || track->is_process ? NULL : find_track(trace, track->parent);
    return parent == NULL ? track : parent;
}

static void put_place(Text *text, const Perfetto *trace, const Track *track) {
    PUT(text, ",\"pid\":");
    put_integer(text, process_of(trace, track)->process);
    PUT(text, ",\"tid\":");
    put_integer(text, track->is_thread || track->is_process ? track->thread : (int64_t)(track->uuid & INT32_MAX));
}

static void put_item(Text *text, const Perfetto *trace, const Item *item) {
    bool on_device = item->phase == STAGE;
    put_name(text, item->phase == COUNTER ? "C" : item->phase == INSTANT ? "i" : "X",
             on_device ? stage_category(item->category) : item->category, item->name);
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

static Slice track_name(const Track *track) {
    Slice own = names_process(track) ? track->process_name : track->thread_name;
    return own.length > 0 ? own : track->name;
}

/* The name of a process or thread, as an event of its own. */
static void put_track(Text *text, const Perfetto *trace, const Track *track) {
    PUT(text, "{\"ph\":\"M\",\"name\":");
    put_string(text, names_process(track) ? KEY("process_name") : KEY("thread_name"));
    PUT(text, ",\"ts\":0.0");
    put_place(text, trace, track);
    PUT(text, ",\"args\":{\"name\":");
    put_string(text, track_name(track));
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

static void put_head(Text *text, const Perfetto *trace) {
    bool first = true;
    PUT(text, "{");
    for (size_t number = 0; number < trace->fact_count; number++) put_fact(text, trace->facts[number], &first);
    put_key(text, KEY("baseTimeNanoseconds"), &first);
    put_integer(text, trace->base);
    put_key(text, KEY("traceEvents"), &first);
    PUT(text, "[\n");
}

void write_text(Perfetto *trace, Text *text, size_t size) {
    if (trace->has_ended) return;
    if (!trace->has_head) put_head(text, trace);
    trace->has_head = true;
    while (text->length < size && !text->failed) {
        if (trace->next_track < trace->track_count) {
            const Track *track = &trace->tracks[trace->next_track++];
            if (!track->known || track_name(track).length == 0) continue;
            if (trace->has_events) PUT(text, ",\n");
            put_track(text, trace, track);
        } else if (trace->next_item < trace->item_count) {
            const Item *item = &trace->items[trace->next_item++];
            if (item->phase == END || (item->phase == BEGIN && !item->has_end)) continue;
            if (trace->has_events) PUT(text, ",\n");
            put_item(text, trace, item);
        } else {
            if (trace->whole) PUT(text, "]}");
            trace->has_ended = true;
            break;
        }
        trace->has_events = true;
    }
}
