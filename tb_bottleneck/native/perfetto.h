/* Reads a native trace of Perfetto (.pftrace), as torch 2.15 writes it, and gives it back as Kineto's JSON.
 *
 * The numbers of fields are those of the proto files in google/perfetto, protos/perfetto/trace. What torch writes:
 * tracks of processes and threads, slices of the host as a begin and an end, slices of the device as render stages,
 * counters of the device, names and categories as interned strings. Slices of one kind may be written as all begins and
 * then all ends, which is not the order of time. */

#ifndef TB_BOTTLENECK_PERFETTO_H
#define TB_BOTTLENECK_PERFETTO_H

#include "scan.h"
#include "text.h"
#include "wire.h"

/* What a number is the name of. */
enum Kind {
    CATEGORY, EVENT_NAME, ANNOTATION_NAME, STRING_VALUE, SPECIFICATION, KERNEL_NAME, ARGUMENT_NAME, COUNTER_NAME,
};

typedef struct {
    uint64_t sequence, iid;
    enum Kind kind;
    Slice text;
    bool used;
} Interned;

typedef struct {
    Interned *slots;
    size_t count, size;
    uint64_t seed;
} Names;

typedef struct {
    uint64_t uuid, parent;
    Slice name, process_name, thread_name;
    int64_t process, thread;
    bool is_process, is_thread, known;
} Track;

enum Phase { BEGIN, END, INSTANT, STAGE, COUNTER };

/* One slice, instant, render stage or value of a counter. */
typedef struct {
    enum Phase phase;
    bool has_end;
    uint64_t sequence;
    int64_t start, end; /* ns */
    size_t track;
    Slice name, category;
    Slice message; /* the track event, or the render stage, with its arguments */
    double value;  /* of a counter */
    int64_t device;
} Item;

typedef struct {
    Names names;
    uint64_t seed; /* of the hash tables: a file must not be able to make its ids collide */
    Track *tracks;
    size_t track_count, track_capacity;
    uint32_t *track_slots; /* number of the track + 1, by the hash of its uuid */
    size_t track_slot_count;
    Item *items;
    size_t item_count, item_capacity;
    Slice *facts; /* messages of ChromeMetadata: further top-level keys */
    size_t fact_count, fact_capacity;
    const Slice *wanted; /* names of arguments that are written; all if there are none */
    size_t wanted_count;
    int64_t base; /* ns: the time that all others are relative to */
    bool has_base;
    bool whole; /* false if the last packet is incomplete */
    /* The text that is written next. */
    size_t next_track, next_item;
    bool has_head, has_events, has_ended;
} Perfetto;

enum Outcome read_packets(Perfetto *trace, Slice packets);

/* The track with this uuid; NULL if there is none. */
const Track *find_track(const Perfetto *trace, uint64_t uuid);

/* The text of a number; empty if it has none. */
Slice name_of(const Names *names, uint64_t sequence, enum Kind kind, uint64_t iid);

void perfetto_free(Perfetto *trace);

/* Appends the next events as JSON, about so many bytes; nothing if everything was written. */
void write_text(Perfetto *trace, Text *text, size_t size);

#endif
