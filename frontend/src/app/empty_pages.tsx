// Pages without a report that few visits show: the first scan, an empty logdir, and a recording that is gone.
import { Problems } from "../features/run_list/run_list";
import type { Report } from "../shared/report";
import { quoted } from "../shared/text/shell";
import { CodeBlock } from "../shared/widgets/code_block";
import { Empty } from "./empty";
import { RecordingPage } from "./recording_page";

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


export function NoRecordings({ logdir, problems }: { logdir: string; problems: readonly string[] }) {
  const folder = `${logdir.replace(/\/+$/, "")}/mine`;
  return (
    <Empty heading="No recordings yet">
      <p>
        There is no recording under <code>{logdir}</code>. This tab reads the event files of the monitor, and the traces that
        torch.profiler writes, <code>*.pt.trace.json</code>, <code>*.pt.trace.json.gz</code> and <code>*.pftrace</code>, in the logdir and
        in every directory below it.
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
