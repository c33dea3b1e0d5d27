// Shown while there is no report: why, and what happens or what to do next.
import type { ComponentChildren } from "preact";
import type { ReportAnswer, RunEntry } from "../shared/report";
import { bytes, timeOfDay } from "../shared/text/format";
import { RecordingName } from "../shared/widgets/recording_name";
import type { Failure } from "./state";

export function Empty({ heading, children }: { heading: string; children?: ComponentChildren }) {
  return (
    <section class="empty">
      <h1>{heading}</h1>
      {children}
    </section>
  );
}

/** No response has arrived yet. Appears with a delay, so that a quick response does not cause flicker. */
export function Connecting() {
  return (
    <section class="empty delayed" role="status">
      <p class="muted">Connecting to TensorBoard…</p>
    </section>
  );
}

/** The recording is analysed. Of one that is done only the report is on its way: then the page appears with a delay. */
export function Analysing({ entry, answer }: { entry: RunEntry; answer: ReportAnswer | undefined }) {
  const { state, progress } = answer ?? entry;
  return (
    <section class={entry.state === "done" ? "empty delayed" : "empty"}>
      <p class="path">
        <RecordingName of={entry} />
      </p>
      <h1>{state === "waiting" ? "Waiting…" : "Reading the recording…"}</h1>
      <p class="muted" role="status">
        {state === "waiting" ? "Other recordings are being analysed; this one is next." : `Its size is ${bytes(entry.size_bytes)}. The verdict appears here as soon as it is ready.`}
      </p>
      {state === "waiting" ? <progress aria-label="Waiting" /> : <progress value={progress} max={1} aria-label="Progress of the analysis" />}
    </section>
  );
}

export function Unreachable({ failure, retry }: { failure: Failure; retry: () => void }) {
  return (
    <Empty heading="TensorBoard does not answer">
      <p role="status">
        No response since {timeOfDay(failure.since)}. {failure.message} The tab keeps trying.
      </p>
      <p>
        <button type="button" onClick={retry}>
          Try again
        </button>
      </p>
    </Empty>
  );
}
