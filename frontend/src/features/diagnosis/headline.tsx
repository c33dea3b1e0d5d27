// The headline of a recording: what to change first, the cause, the confidence, and the facts about the recording.
import type { ComponentChildren } from "preact";
import type { Device, JobAnswer, Report, ReportAnswer, Verdict, Window } from "../../shared/report";
import { unprofiledStep, unprofiledSteps } from "../../shared/run/unprofiled";
import { count, duration, shortShare, spread } from "../../shared/text/format";
import { leadOf } from "../../shared/text/names";
import { basis, confidence, evidenceSource, health, noVerdict, severity, stepTitle, type Label } from "../../shared/text/vocabulary";
import { Fact } from "../../shared/widgets/fact";
import { Icon } from "../../shared/widgets/icon";
import { RecordingName } from "../../shared/widgets/recording_name";

interface HeadlineProps {
  readonly report: Report;
  /** Shows one line. */
  readonly brief: boolean;
  /** The job that the recording is a rank of. */
  readonly job: JobAnswer | "pending" | undefined;
  /** Shows the job; undefined if it is shown already. */
  readonly openJob: (() => void) | undefined;
  readonly analysis: ReportAnswer | undefined; // set while the recording, which has changed, is analysed again
  readonly children: ComponentChildren; // beside the path
}

export function Headline({ report, brief, job, openJob, analysis, children }: HeadlineProps) {
  const own = report.verdict;
  const verdict = (job !== undefined && job !== "pending" && leadingVerdict(job)) || own;
  const status = report.health?.status ?? "";
  return (
    <header class="headline">
      <p class="path" title={`${report.run}/${report.source}`}>
        <RecordingName of={report} />
      </p>
      {children}
      {!brief && verdict !== own && <p class="scope">Job of {count(report.world_size ?? 1)} ranks</p>}
      <h1>{verdict ? leadOf(verdict) : noVerdict(status, report.evidence_source)}</h1>
      {!brief && verdict && <Beside verdict={verdict} />}
      {!brief && job && <OfJob job={job} report={report} leads={verdict !== own} open={openJob} />}
      <ul class="badges">
        {!brief && verdict && <Badge label={severity(verdict)} />}
        {!brief && verdict && <li class="badge">{confidence(verdict.confidence)}</li>}
        {!brief && status && <Badge label={health(status)} />}
        <li class={analysis ? "badge tone-note" : "visually-hidden"}>
          <span role="status">{analysis && `The file has changed and is analysed again: ${shortShare(analysis.progress)}`}</span>
        </li>
      </ul>
    </header>
  );
}

/** The cause behind the action; what is about time if the memory leads, and about the memory if the time does. */
function Beside({ verdict: { action, action_cause: cause, headline, memory_alert: alert } }: { verdict: Verdict }) {
  if (alert?.leads) return <p class="cause">About the time: {[action, headline].filter(Boolean).join(". ")}</p>;
  return (
    <>
      {action && <p class="cause">{[cause, headline].filter(Boolean).join(" ")}</p>}
      {alert && <p class="cause">About the memory: {alert.headline}</p>}
    </>
  );
}

/** The verdict of the job, if it says what holds the ranks up. Accounts of single ranks are not enough for that. */
function leadingVerdict({ job, basis }: JobAnswer): Verdict | undefined {
  return job && basis !== "accounts" && (job.verdict?.action || job.stragglers.length > 0) ? job.verdict : undefined;
}

/** What the rank alone says, or what the job says if that is less. */
function OfJob({ job, report: { rank, world_size, verdict }, leads, open }: { job: JobAnswer | "pending"; report: Report; leads: boolean; open: HeadlineProps["openJob"] }) {
  const name = `Rank ${rank === undefined ? "" : count(rank)}`;
  const whole = `Job of ${count(world_size ?? 1)} ranks`;
  if (job === "pending") return <p class="cause muted" role="status">{`${name} alone. The verdict of the job is on its way…`}</p>;
  if (leads && !open) return null; // the job itself is shown
  if (job.basis === "none") return null;
  const says = job.basis === "accounts" ? "the ranks are not analysed together." : (job.job?.verdict?.headline ?? "");
  return (
    <p class="cause">
      {leads ? `${name} alone: ${verdict ? leadOf(verdict) : "no verdict."}` : `${whole}: ${says}`}{" "}
      {open && (
        <button type="button" class="link" onClick={open}>
          Show the job
        </button>
      )}
    </p>
  );
}

function Badge({ label: { text, icon, tone } }: { label: Label }) {
  return (
    <li class={`badge tone-${tone}`}>
      <Icon name={icon} />
      {text}
    </li>
  );
}

/** The step time and the device in one line. */
export function About({ report: { unprofiled, window, device } }: { report: Report }) {
  const step = unprofiled ? unprofiledStep(unprofiled) : window?.basis === "whole" ? undefined : window?.step_ns?.mean;
  const parts = [step !== undefined && `${duration(step)} per step${unprofiled ? " without the profiler" : ""}`, device && (device.name || deviceLabel(device))];
  return <p class="about muted">{parts.filter(Boolean).join(" · ")}</p>;
}

export function Facts({ report: { window, device, rank, world_size, verdict, unprofiled, evidence_source: source } }: { report: Report }) {
  const facts = [
    unprofiled && <Fact key="unprofiled" name="Step without profiler" value={duration(unprofiledStep(unprofiled))} note={unprofiledSteps(unprofiled) > 0 ? `${count(unprofiledSteps(unprofiled))} steps` : ""} />,
    window?.step_ns && window.basis !== "whole" && (
      <Fact
        key="time"
        name={stepTitle(window)}
        value={duration(window.step_ns.mean)}
        note={window.steps > 1 ? spread(window.step_ns) : ""}
      />
    ),
    window && <Fact key="steps" name="Steps" value={window.basis === "whole" ? "No step marks" : count(window.steps)} note={basis(window.basis)} />,
    device && <Fact key="device" name="Device" value={device.name || deviceLabel(device)} note={deviceNote(device)} />,
    rank !== undefined && world_size !== 1 && (
      <Fact key="rank" name="Rank" value={count(rank)} note={world_size === undefined ? "" : `of ${count(world_size)}`} />
    ),
    window && <Fact key="window" name={verdict ? "Analysed window" : "Recorded"} value={duration(analysedTime(window))} note={evidenceSource(source)} />,
  ].filter(Boolean);
  return facts.length > 0 ? <dl class="facts">{facts}</dl> : null;
}

/** The time of the window; of telemetry that of its steps, which leaves out what was profiled. */
function analysedTime({ basis: stepBasis, steps, step_ns, begin_ns, end_ns }: Window): number {
  return stepBasis === "step_clock" && step_ns ? steps * step_ns.mean : end_ns - begin_ns;
}

/** "cuda 0", or "cpu". */
function deviceLabel({ kind, index }: Device): string {
  return kind === "cpu" ? kind : `${kind} ${index}`;
}

function deviceNote(device: Device): string {
  const label = device.name ? [deviceLabel(device)] : [];
  const others = device.count > 1 ? [`one of ${count(device.count)} in use`] : [];
  return [...label, ...others].join(", ");
}
