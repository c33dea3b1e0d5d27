// The headline of a recording: what to change first, the cause, the confidence, and the facts about the recording.
import type { ComponentChildren } from "preact";
import type { Device, Report, ReportAnswer } from "../../shared/report";
import { count, duration, shortShare, spread } from "../../shared/text/format";
import { leadOf } from "../../shared/text/names";
import { basis, confidence, evidenceSource, health, noVerdict, severity, type Label } from "../../shared/text/vocabulary";
import { Fact } from "../../shared/widgets/fact";
import { Icon } from "../../shared/widgets/icon";
import { RecordingName } from "../../shared/widgets/recording_name";

interface HeadlineProps {
  readonly report: Report;
  readonly analysis: ReportAnswer | undefined; // set while the recording, which has changed, is analysed again
  readonly children: ComponentChildren; // beside the path
}

export function Headline({ report, analysis, children }: HeadlineProps) {
  const { verdict } = report;
  const status = report.health?.status ?? "";
  return (
    <header class="headline">
      <p class="path" title={`${report.run}/${report.source}`}>
        <RecordingName of={report} />
      </p>
      {children}
      <h1>{verdict ? leadOf(verdict) : noVerdict(status, report.evidence_source)}</h1>
      {verdict?.action && <p class="cause">{verdict.headline}</p>}
      <ul class="badges">
        {verdict && <Badge label={severity(verdict)} />}
        {verdict && <li class="badge">{confidence(verdict.confidence)}</li>}
        {status && <Badge label={health(status)} />}
        <li class={analysis ? "badge tone-note" : "visually-hidden"}>
          <span role="status">{analysis && `The file has changed and is analysed again: ${shortShare(analysis.progress)}`}</span>
        </li>
      </ul>
    </header>
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

export function Facts({ report: { window, device, rank, world_size, verdict, evidence_source: source } }: { report: Report }) {
  const facts = [
    window?.step_ns && window.basis !== "whole" && (
      <Fact
        key="time"
        name={window.steps > 1 ? "Mean step" : "Step"}
        value={duration(window.step_ns.mean)}
        note={window.steps > 1 ? spread(window.step_ns) : ""}
      />
    ),
    window && <Fact key="steps" name="Steps" value={window.basis === "whole" ? "No step marks" : count(window.steps)} note={basis(window.basis)} />,
    device && <Fact key="device" name="Device" value={device.name || deviceLabel(device)} note={deviceNote(device)} />,
    rank !== undefined && world_size !== 1 && (
      <Fact key="rank" name="Rank" value={count(rank)} note={world_size === undefined ? "" : `of ${count(world_size)}`} />
    ),
    window && <Fact key="window" name={verdict ? "Analysed window" : "Recorded"} value={duration(window.end_ns - window.begin_ns)} note={evidenceSource(source)} />,
  ].filter(Boolean);
  return facts.length > 0 ? <dl class="facts">{facts}</dl> : null;
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
