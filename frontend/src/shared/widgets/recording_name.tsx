// A recording's name: its run and its file, each of which may be written from right to left without turning the two around.
import { runName, sourceName } from "../text/names";

export function RecordingName({ of: { run, source } }: { of: { readonly run: string; readonly source: string } }) {
  return (
    <>
      <bdi>{runName(run)}</bdi> <span aria-hidden="true">›</span> <bdi>{sourceName(source)}</bdi>
    </>
  );
}
