/* The Python module `scanner`: see scanner.pyi. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdlib.h>

#include "perfetto.h"
#include "scan.h"

static uint64_t seed; /* of the hash tables: a file must not be able to make its keys collide */

/* The arguments of a call, without objects of Python. */
typedef struct {
    Slice *lists;
    size_t list_count;
    Category *categories;
    size_t category_count;
} Input;

/* Columns of rows: a tuple of bytes, each of int64 in native order. */
static PyObject *columns_of(const Rows *rows) {
    PyObject *columns = PyTuple_New((Py_ssize_t)rows->width);
    for (size_t number = 0; columns != NULL && number < rows->width; number++) {
        PyObject *column = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(rows->rows * sizeof(int64_t)));
        if (column == NULL || PyTuple_SetItem(columns, (Py_ssize_t)number, column) != 0) {
            Py_CLEAR(columns);
            break;
        }
        char *to = PyBytes_AsString(column);
        const int64_t *from = rows->numbers + number;
        for (size_t row = 0; row < rows->rows; row++, to += sizeof *from, from += rows->width) memcpy(to, from, sizeof *from);
    }
    return columns;
}

/* The parts of a key, with a zero byte between them; None for a marker. */
static PyObject *key_of(const Key *key) {
    if (key->marker) Py_RETURN_NONE;
    size_t size = PARTS - 1;
    for (int part = 0; part < PARTS; part++) size += key->parts[part].length;
    PyObject *bytes = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)size);
    if (bytes == NULL) return NULL;
    char *to = PyBytes_AsString(bytes);
    for (int part = 0; part < PARTS; part++) {
        if (part > 0) *to++ = '\0';
        if (key->parts[part].length > 0) memcpy(to, key->parts[part].at, key->parts[part].length);
        to += key->parts[part].length;
    }
    return bytes;
}

static PyObject *keys_of(const Table *table) {
    PyObject *keys = PyList_New((Py_ssize_t)table->count);
    for (size_t number = 0; keys != NULL && number < table->count; number++) {
        PyObject *key = key_of(&table->keys[number]);
        if (key == NULL || PyList_SetItem(keys, (Py_ssize_t)number, key) != 0) Py_CLEAR(keys);
    }
    return keys;
}

/* The events that are left to Python: a list of pairs of row and text. */
static PyObject *handed_of(const Scan *scan) {
    PyObject *handed = PyList_New((Py_ssize_t)scan->handed_count);
    for (size_t number = 0; handed != NULL && number < scan->handed_count; number++) {
        const Handed *event = &scan->handed[number];
        PyObject *pair = Py_BuildValue("(ny#)", (Py_ssize_t)event->row, (const char *)event->text.at,
                                       (Py_ssize_t)event->text.length);
        if (pair == NULL || PyList_SetItem(handed, (Py_ssize_t)number, pair) != 0) Py_CLEAR(handed);
    }
    return handed;
}

static PyObject *result_of(const Scan *scan) {
    return Py_BuildValue("(nNNNNNN)", (Py_ssize_t)scan->events, columns_of(&scan->complete), keys_of(&scan->labels),
                         keys_of(&scan->signatures), columns_of(&scan->memory), keys_of(&scan->callers), handed_of(scan));
}

static bool slice_of(PyObject *bytes, Slice *slice) {
    char *at;
    Py_ssize_t length;
    if (bytes == NULL || PyBytes_AsStringAndSize(bytes, &at, &length) != 0) return false;
    *slice = (Slice){(const uint8_t *)at, (size_t)length};
    return true;
}

/* Reads the arguments, which are tuples, so that no other thread can change them; false with an exception. */
static bool read_input(PyObject *lists, PyObject *categories, Input *input) {
    input->list_count = (size_t)PyTuple_Size(lists);
    input->category_count = (size_t)PyTuple_Size(categories);
    input->lists = PyMem_Calloc(input->list_count + 1, sizeof *input->lists);
    input->categories = PyMem_Calloc(input->category_count + 1, sizeof *input->categories);
    if (input->lists == NULL || input->categories == NULL) return PyErr_NoMemory() != NULL;
    for (size_t number = 0; number < input->list_count; number++) {
        if (!slice_of(PyTuple_GetItem(lists, (Py_ssize_t)number), &input->lists[number])) return false;
    }
    for (size_t number = 0; number < input->category_count; number++) {
        Category *category = &input->categories[number];
        PyObject *pair = PyTuple_GetItem(categories, (Py_ssize_t)number), *text;
        if (pair == NULL || !PyTuple_Check(pair)) {
            PyErr_SetString(PyExc_TypeError, "a category is a tuple of its text and its roles");
            return false;
        }
        if (!PyArg_ParseTuple(pair, "SI", &text, &category->roles)) return false;
        if (!slice_of(text, &category->text)) return false;
    }
    return true;
}

/* Scans without the GIL. Returns the result, or the number of the list that was refused. */
static PyObject *scanned(const Input *input, bool exact) {
    Scan scan;
    PyObject *result;
    enum Outcome outcome = SCANNED;
    size_t done = 0;
    scan_begin(&scan, seed, NULL);
    scan.exact = exact;
    scan.categories = input->categories;
    scan.category_count = input->category_count;
    Py_BEGIN_ALLOW_THREADS
    while (done < input->list_count && (outcome = scan_list(&scan, input->lists[done])) == SCANNED) done++;
    Py_END_ALLOW_THREADS
    if (outcome == NO_MEMORY) {
        result = PyErr_NoMemory();
    } else {
        result = outcome == REFUSED ? PyLong_FromSize_t(done) : result_of(&scan);
    }
    scan_free(&scan);
    return result;
}

static PyObject *scan(PyObject *self, PyObject *arguments) {
    PyObject *lists, *categories, *result = NULL;
    int exact;
    Input input = {0};
    (void)self;
    if (!PyArg_ParseTuple(arguments, "O!O!p", &PyTuple_Type, &lists, &PyTuple_Type, &categories, &exact)) return NULL;
    if (read_input(lists, categories, &input)) result = scanned(&input, exact);
    PyMem_Free(input.lists);
    PyMem_Free(input.categories);
    return result;
}

static const char PERFETTO[] = "tb_bottleneck.native.scanner.perfetto";

static void close_perfetto(PyObject *capsule) {
    Perfetto *trace = PyCapsule_GetPointer(capsule, PERFETTO);
    perfetto_free(trace);
    PyMem_Free(trace);
}

static PyObject *perfetto_begin(PyObject *self, PyObject *arguments) {
    (void)self, (void)arguments;
    Perfetto *trace = PyMem_Calloc(1, sizeof *trace);
    if (trace == NULL) return PyErr_NoMemory();
    trace->seed = seed;
    PyObject *capsule = PyCapsule_New(trace, PERFETTO, close_perfetto);
    if (capsule == NULL) PyMem_Free(trace);
    return capsule;
}

static PyObject *perfetto_read(PyObject *self, PyObject *arguments) {
    PyObject *capsule, *bytes;
    Slice slice;
    bool fits;
    (void)self;
    if (!PyArg_ParseTuple(arguments, "OS", &capsule, &bytes) || !slice_of(bytes, &slice)) return NULL;
    Perfetto *trace = PyCapsule_GetPointer(capsule, PERFETTO);
    if (trace == NULL) return NULL;
    Py_BEGIN_ALLOW_THREADS
    fits = read_packets(trace, slice);
    Py_END_ALLOW_THREADS
    if (!fits) return PyErr_NoMemory();
    Py_RETURN_NONE;
}

static PyObject *truth(bool value) { return value ? Py_True : Py_False; }

static PyObject *perfetto_end(PyObject *self, PyObject *capsule) {
    Text head = {0};
    bool fits;
    (void)self;
    Perfetto *trace = PyCapsule_GetPointer(capsule, PERFETTO);
    if (trace == NULL) return NULL;
    Py_BEGIN_ALLOW_THREADS
    fits = end_packets(trace);
    Py_END_ALLOW_THREADS
    if (fits) put_head(&head, trace);
    PyObject *result = !fits || head.failed ? PyErr_NoMemory()
        : Py_BuildValue("(y#nOOO)", head.at, (Py_ssize_t)head.length, (Py_ssize_t)event_count(trace),
                        truth(trace->whole), truth(trace->has_slices), truth(trace->exact));
    free(head.at);
    return result;
}

static PyObject *perfetto_scan(PyObject *self, PyObject *arguments) {
    PyObject *capsule, *lists, *categories, *result = NULL;
    Py_ssize_t first, end, bytes;
    Input input = {0};
    (void)self;
    if (!PyArg_ParseTuple(arguments, "OnnnO!", &capsule, &first, &end, &bytes, &PyTuple_Type, &categories)) return NULL;
    Perfetto *trace = PyCapsule_GetPointer(capsule, PERFETTO);
    if (trace == NULL || (lists = PyTuple_New(0)) == NULL) return NULL;
    if (read_input(lists, categories, &input)) {
        Scan scan;
        Arena copies = {0};
        enum Outcome outcome;
        size_t next = first < 0 ? 0 : (size_t)first, last = end < 0 ? 0 : (size_t)end, size = bytes < 1 ? 1 : (size_t)bytes;
        scan_begin(&scan, seed, &copies);
        scan.categories = input.categories;
        scan.category_count = input.category_count;
        Py_BEGIN_ALLOW_THREADS
        outcome = scan_packets(trace, &copies, &scan, &next, last, &size);
        Py_END_ALLOW_THREADS
        result = outcome == SCANNED ? Py_BuildValue("(nnN)", (Py_ssize_t)next, (Py_ssize_t)size, result_of(&scan))
                                    : PyErr_NoMemory();
        scan_free(&scan);
        arena_free(&copies);
    }
    PyMem_Free(input.lists);
    PyMem_Free(input.categories);
    Py_DECREF(lists);
    return result;
}

/* Python's own hash is seeded at random for each process, unless PYTHONHASHSEED says otherwise. */
static int set_up(PyObject *module) {
    (void)module;
    PyObject *text = PyBytes_FromString("tb_bottleneck.native.scanner");
    if (text == NULL) return -1;
    seed = (uint64_t)PyObject_Hash(text);
    Py_DECREF(text);
    return PyErr_Occurred() ? -1 : 0;
}

static PyMethodDef functions[] = {
    {"scan", scan, METH_VARARGS, PyDoc_STR("Scans lists of events into columns; see scanner.pyi.")},
    {"perfetto_begin", perfetto_begin, METH_NOARGS, PyDoc_STR("Begins a native trace of Perfetto; see scanner.pyi.")},
    {"perfetto_read", perfetto_read, METH_VARARGS, PyDoc_STR("Reads its next bytes; see scanner.pyi.")},
    {"perfetto_end", perfetto_end, METH_O, PyDoc_STR("Ends it; see scanner.pyi.")},
    {"perfetto_scan", perfetto_scan, METH_VARARGS, PyDoc_STR("Scans some of its events into columns; see scanner.pyi.")},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, (void *)set_up},
#ifdef Py_mod_gil
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
    {0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "scanner", .m_methods = functions, .m_slots = slots,
};

PyMODINIT_FUNC PyInit_scanner(void);
PyMODINIT_FUNC PyInit_scanner(void) { return PyModuleDef_Init(&definition); }
