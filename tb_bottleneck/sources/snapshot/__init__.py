"""Reads allocator snapshots, which are pickles of plain data, without executing anything in them."""

# Names of files that torch.cuda.memory._dump_snapshot writes in its documentation. They are read if they are named.
SNAPSHOT_ENDINGS = (".pickle", ".pkl", ".pickle.gz", ".pkl.gz")
