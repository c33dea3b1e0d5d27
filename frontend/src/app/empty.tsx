// What is shown while there is no report to show: why, and what happens or what to do next.
import type { ComponentChildren } from "preact";
import { bytes, timeOfDay } from "../shared/text/format";
import type { Report, ReportAnswer, RunEntry } from "../shared/report";
import type { Failure } from "./state";
import { Code } from "../shared/widgets/code_block";
import { RecordingPage } from "./recording";
import { RecordingName } from "../shared/widgets/recording_name";
import { Problems } from "../features/run_list/run_list";

function Empty({ heading, children }: { heading: string; children?: ComponentChildren }) {
  return (
    <section class="empty">
      <h1>{heading}</h1>
      {children}
    </section>
  );
}

/** Nothing has been answered yet. Appears late, so that a quick answer is not preceded by a flash. */
export function Asking() {
  return (
    <section class="empty late" role="status">
      <p class="muted">Asking TensorBoard…</p>
    </section>
  );
}

export function Scanning({ logdir }: { logdir: string }) {
  return (
    <Empty heading="Looking for recordings…">
      <p role="status">
        The first look through <code>{logdir}</code> is under way.
      </p>
      <progress aria-label="Looking for recordings" />
    </Empty>
  );
}

/** The shortest change to a training loop that records a trace which can be judged. */
function recipe(logdir: string): string {
  return `from torch.profiler import profile, schedule, tensorboard_trace_handler

steps = schedule(wait=2, warmup=2, active=6, repeat=1)
handler = tensorboard_trace_handler(${JSON.stringify(logdir)})
with profile(schedule=steps, on_trace_ready=handler, record_shapes=True) as prof:
    for batch in loader:
        train_step(batch)
        prof.step()`;
}

/** As a shell takes it for one word. */
const quoted = (path: string): string => (/^[\w./:@-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`);

export function NoRecordings({ logdir, problems }: { logdir: string; problems: readonly string[] }) {
  return (
    <Empty heading="No recordings yet">
      <p>
        There is no trace under <code>{logdir}</code>. This tab reads the files that torch.profiler writes,{" "}
        <code>*.pt.trace.json</code> and <code>*.pt.trace.json.gz</code>, in the logdir and in every directory below it.
      </p>
      <p>A few lines around the training loop record one:</p>
      <Code text={recipe(logdir)} label="code that records a trace" />
      <p class="muted">
        <code>batch</code>, <code>loader</code> and <code>train_step</code> are yours.
      </p>
      <p>Or watch the whole training, without a change to it; some traces of it are recorded by the way:</p>
      <Code text={`tb-bottleneck run --logdir ${quoted(logdir)} train.py`} label="the command that watches a training" />
      <p class="muted">Whatever is written appears here by itself.</p>
      <Problems problems={problems} />
    </Empty>
  );
}

export function Analysing({ entry, answer }: { entry: RunEntry; answer: ReportAnswer | undefined }) {
  const { state, progress } = answer ?? entry;
  return (
    <section class="empty">
      <p class="path">
        <RecordingName of={entry} />
      </p>
      <h1>{state === "waiting" ? "Waiting its turn…" : "Reading the recording…"}</h1>
      <p class="muted" role="status">
        {state === "waiting" ? "Other recordings are being analysed; this one is next." : `It has ${bytes(entry.size_bytes)}. The verdict appears here as soon as it is there.`}
      </p>
      {state === "waiting" ? <progress aria-label="Waiting" /> : <progress value={progress} max={1} aria-label="Analysed so far" />}
    </section>
  );
}

export function Vanished({ name, report }: { name: string; report: Report | undefined }) {
  const notice = (
    <>
      <p>
        <code>{name}</code> {report ? "is no longer under the logdir: it was moved or deleted. What is shown here is its last report." : "is not under the logdir. It was moved or deleted, or the address of this page names a recording of another logdir."}
      </p>
      <p class="muted">Choose another one from the list.</p>
    </>
  );
  if (!report) return <Empty heading="This recording is not here">{notice}</Empty>;
  return (
    <>
      <section class="notice">{notice}</section>
      <RecordingPage report={report} again={undefined} shown={undefined} />
    </>
  );
}

export function Silent({ failure, retry }: { failure: Failure; retry: () => void }) {
  return (
    <Empty heading="TensorBoard does not answer">
      <p role="status">
        Nothing has been heard since {timeOfDay(failure.since)}. {failure.message} It is asked again by itself.
      </p>
      <p>
        <button type="button" onClick={retry}>
          Ask again
        </button>
      </p>
    </Empty>
  );
}
