/* Reads a native trace of Perfetto (.pftrace), as torch 2.15 writes it, into the columns that the scanner of JSON fills.
 * What the scanner leaves to Python becomes Kineto's JSON.
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

/* A part of the bytes that are kept of the packets. These move while they grow, so it is not an address. */
typedef struct {
    uint32_t at, length;
} Part;

/* What kind of text an interned number (iid) stands for. */
enum Kind {
    CATEGORY, EVENT_NAME, ANNOTATION_NAME, STRING_VALUE, SPECIFICATION, KERNEL_NAME, ARGUMENT_NAME, COUNTER_NAME,
};

typedef struct {
    uint64_t sequence, iid;
    enum Kind kind;
    Part text;
    bool used;
} Interned;

typedef struct {
    Interned *slots;
    size_t count, size;
    uint64_t seed;
} Names;

typedef struct {
    uint64_t uuid, parent;
    Part name, process_name, thread_name;
    int64_t process, thread;
    bool is_process, is_thread, known;
} Track;

enum Phase { BEGIN, INSTANT, STAGE, COUNTER };

enum { SEQUENCE_BITS = 29 };

/* One slice of the host, instant, render stage of a device, or value of a counter. */
typedef struct {
    int64_t start, end; /* ns */
    Part name, category;
    Part message; /* the arguments of the track event or the render stage, as its fields */
    union {
        double value; /* of a counter */
        uint64_t id;  /* of a render stage, for those that wait for it */
    };
    union {
        uint32_t track; /* of the host */
        int32_t device;
    };
    uint32_t sequence : SEQUENCE_BITS;
    uint32_t phase : 2;
    uint32_t has_end : 1;
} Item;

/* The begin or the end of a slice of the host. */
typedef struct {
    int64_t time;
    uint32_t track;
    uint32_t item; /* number of the item + 1 if the slice begins */
} Mark;

typedef struct {
    uint8_t *kept;
    size_t kept_count, kept_capacity;
    uint8_t *packets; /* the bytes read last, after the incomplete packet before them */
    size_t packet_bytes, packet_capacity;
    Names names;
    uint64_t seed; /* of the hash tables: a file must not be able to make its ids collide */
    Track *tracks;
    size_t track_count, track_capacity;
    uint32_t *track_slots; /* number of the track + 1, by the hash of its uuid */
    size_t track_slot_count;
    Item *items;
    size_t item_count, item_capacity;
    Mark *marks;
    size_t mark_count, mark_capacity;
    Part *facts; /* messages of ChromeMetadata: further top-level keys */
    size_t fact_count, fact_capacity;
    int64_t base; /* ns: the time that all others are relative to */
    bool has_base;
    bool whole; /* false if the last packet is incomplete */
    bool exact;   /* some times have more digits than a float64 can hold */
    bool damaged; /* what follows is no packet, or too large for one; it is not read */
    bool has_slices, has_waits;
    uint32_t *stage_slots; /* number of the item + 1, by the hash of its sequence and id; NULL if none waits for another */
    size_t stage_slot_count;
} Perfetto;

static inline Slice text_at(const Perfetto *trace, Part part) {
    return part.length == 0 ? (Slice){0} : (Slice){trace->kept + part.at, part.length};
}

/* Reads the next bytes of the file. Returns false if there is no memory, or too much would be kept: MAX_NAMES and others. */
bool read_packets(Perfetto *trace, Slice bytes);

/* Must be called after the last bytes. Returns false if there is no memory. */
bool end_packets(Perfetto *trace);

/* The track with this uuid; NULL if there is none. */
const Track *find_track(const Perfetto *trace, uint64_t uuid);

/* The text of a number; empty if it has none. */
Part name_of(const Names *names, uint64_t sequence, enum Kind kind, uint64_t iid);

void perfetto_free(Perfetto *trace);

/* The number of events: names of tracks, and then items. */
size_t event_count(const Perfetto *trace);

/* The top-level keys as JSON, up to the begin of the list of events. */
void put_head(Text *text, const Perfetto *trace);

/* Scans the events from the number `*next` to `last`, where `*next` becomes that of the first one that was not scanned:
 * `*size` is about how many bytes of text may be made, and becomes how many were. `copies` keeps those that the result
 * refers to. */
enum Outcome scan_packets(const Perfetto *trace, Arena *copies, Scan *scan, size_t *next, size_t last, size_t *size);

#endif
