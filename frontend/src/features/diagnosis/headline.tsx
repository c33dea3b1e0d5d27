// The answer in one sentence, how sure it is, and what it is about.
import { count, duration, shortShare, spread } from "../../shared/text/format";
import type { Device, Report, ReportAnswer } from "../../shared/report";
import { basis, confidence, health, noVerdict, severity, witness, type Said } from "../../shared/text/vocabulary";
import { Fact } from "../../shared/widgets/fact";
import { Icon } from "../../shared/widgets/icon";
import { RecordingName } from "../../shared/widgets/recording_name";
import { Share } from "../share/share";

/** `again` is set while the recording, which has changed, is analysed anew: what is shown is about what it was. */
export function Headline({ report, again }: { report: Report; again: ReportAnswer | undefined }) {
  const { verdict } = report;
  const status = report.health?.status ?? "";
  return (
    <header class="headline">
      <p class="path" title={`${report.run}/${report.source}`}>
        <RecordingName of={report} />
      </p>
      <Share report={report} />
      <h1>{verdict ? verdict.headline : noVerdict(status)}</h1>
      <ul class="badges">
        {verdict && <Badge said={severity(verdict.severity)} />}
        {verdict && <li class="badge">{confidence(verdict.confidence)}</li>}
        {status && <Badge said={health(status)} />}
        <li class={again ? "badge tone-note" : "spoken"}>
          <span role="status">{again && `The file has changed: analysing again, ${shortShare(again.progress)}`}</span>
        </li>
      </ul>
    </header>
  );
}

function Badge({ said: { text, icon, tone } }: { said: Said }) {
  return (
    <li class={`badge tone-${tone}`}>
      <Icon name={icon} />
      {text}
    </li>
  );
}

export function Facts({ report: { window, device, rank, world_size, verdict, evidence_source: saw } }: { report: Report }) {
  const facts = [
    window?.step_ns && window.basis !== "whole" && (
      <Fact
        key="time"
        name={window.steps > 1 ? "Median step" : "Step"}
        value={duration(window.step_ns.median)}
        note={window.steps > 1 ? spread(window.step_ns) : ""}
      />
    ),
    window && <Fact key="steps" name="Steps" value={window.basis === "whole" ? "Not told apart" : count(window.steps)} note={basis(window.basis)} />,
    device && <Fact key="device" name="Device" value={device.name || numbered(device)} note={deviceNote(device)} />,
    rank !== undefined && world_size !== 1 && (
      <Fact key="rank" name="Rank" value={count(rank)} note={world_size === undefined ? "" : `of ${count(world_size)}`} />
    ),
    window && <Fact key="window" name={verdict ? "Judged" : "Recorded"} value={duration(window.end_ns - window.begin_ns)} note={witness(saw)} />,
  ].filter(Boolean);
  return facts.length > 0 ? <dl class="facts">{facts}</dl> : null;
}

/** "cuda 0", or "cpu" where there is but one. */
function numbered({ kind, index }: Device): string {
  return kind === "cpu" ? kind : `${kind} ${index}`;
}

function deviceNote(device: Device): string {
  const which = device.name ? [numbered(device)] : [];
  const among = device.count > 1 ? [`one of ${count(device.count)} at work`] : [];
  return [...which, ...among].join(", ");
}
