// Stable names of recordings.

/** Name of a recording that survives a restart of the server. Ids change with each scan of the logdir. */
export type Key = string;

interface Recording {
  readonly run: string;
  readonly source: string;
}

/** The key of a recording, also its spelling in the address: "run/source". */
export function keyOf({ run, source }: Recording): Key {
  return `${run}/${source}`;
}

/** The name of a recording in the server's comparisons (http_api.md): "run/source", or "source" in the logdir itself. */
export function comparedName({ run, source }: Recording): string {
  return run === "." || run === "" ? source : `${run}/${source}`;
}
