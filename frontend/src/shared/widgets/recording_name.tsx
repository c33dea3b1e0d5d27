// The name of a recording: its run and its file. <bdi> keeps their order if one of them is written right to left.
import { runName, sourceName, withoutMonitor } from "../text/names";

export function RecordingName({ of: { run, source } }: { of: { readonly run: string; readonly source: string } }) {
  return (
    <>
      <bdi>{withoutMonitor(runName(run))}</bdi> <span aria-hidden="true">›</span> <bdi>{sourceName(source)}</bdi>
    </>
  );
}
