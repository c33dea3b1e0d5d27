// Shown while there is no report: why, and what happens or what to do next.
import type { ComponentChildren } from "preact";
import { Problems } from "../features/run_list/run_list";
import type { Report, ReportAnswer, RunEntry } from "../shared/report";
import { bytes, timeOfDay } from "../shared/text/format";
import { CodeBlock } from "../shared/widgets/code_block";
import { RecordingName } from "../shared/widgets/recording_name";
import { RecordingPage } from "./recording_page";
import type { Failure } from "./state";

function Empty({ heading, children }: { heading: string; children?: ComponentChildren }) {
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

export function Scanning({ logdir }: { logdir: string }) {
  return (
    <Empty heading="Looking for recordings…">
      <p role="status">
        <code>{logdir}</code> is scanned for the first time.
      </p>
      <progress aria-label="Looking for recordings" />
    </Empty>
  );
}

/** The change to a training loop that the monitor needs. */
function monitored(folder: string): string {
  return `from tb_bottleneck import Monitor

with Monitor(${JSON.stringify(folder)}):
    for batch in loader:
        train_step(batch)`;
}

/** The change to a training loop that records a usable trace with torch alone. */
function profiled(folder: string): string {
  return `from torch.profiler import profile, schedule, tensorboard_trace_handler

with profile(
    schedule=schedule(skip_first=10, wait=1, warmup=2, active=6, repeat=1),
    on_trace_ready=tensorboard_trace_handler(${JSON.stringify(folder)}),
    record_shapes=True,
    with_stack=True,
) as prof:
    for batch in loader:
        train_step(batch)
        prof.step()`;
}

/** The path, quoted for a shell if necessary. */
const quoted = (path: string): string => (/^[\w./:@-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`);

export function NoRecordings({ logdir, problems }: { logdir: string; problems: readonly string[] }) {
  const folder = `${logdir.replace(/\/+$/, "")}/mine`;
  return (
    <Empty heading="No recordings yet">
      <p>
        There is no recording under <code>{logdir}</code>. This tab reads the event files of the monitor, and the traces that
        torch.profiler writes, <code>*.pt.trace.json</code> and <code>*.pt.trace.json.gz</code>, in the logdir and in every directory
        below it.
      </p>
      <p>The monitor logs every step and records some traces:</p>
      <CodeBlock text={monitored(folder)} label="code that monitors a training run" />
      <p>The same without a change of the script:</p>
      <CodeBlock text={`tb-bottleneck run --logdir ${quoted(folder)} train.py`} label="the command that monitors a training run" />
      <p>If the training machine has only torch, record a trace of at least 19 steps:</p>
      <CodeBlock text={profiled(folder)} label="code that records a trace" />
      <p class="muted">
        <code>batch</code>, <code>loader</code> and <code>train_step</code> stand for your own code.
      </p>
      <p class="muted">New recordings appear here automatically.</p>
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
      <h1>{state === "waiting" ? "Waiting…" : "Reading the recording…"}</h1>
      <p class="muted" role="status">
        {state === "waiting" ? "Other recordings are being analysed; this one is next." : `Its size is ${bytes(entry.size_bytes)}. The verdict appears here as soon as it is ready.`}
      </p>
      {state === "waiting" ? <progress aria-label="Waiting" /> : <progress value={progress} max={1} aria-label="Progress of the analysis" />}
    </section>
  );
}

export function Vanished({ name, report }: { name: string; report: Report | undefined }) {
  const notice = (
    <>
      <p>
        <code>{name}</code> {report ? "is no longer under the logdir: it was moved or deleted. This is its last report." : "is not under the logdir. It was moved or deleted, or the address of this page names a recording of another logdir."}
      </p>
      <p class="muted">Choose another recording from the list.</p>
    </>
  );
  if (!report) return <Empty heading="Recording not found">{notice}</Empty>;
  return (
    <>
      <section class="notice">{notice}</section>
      <RecordingPage report={report} analysis={undefined} shown={undefined} />
    </>
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
