// One recording: the answer, where the time goes, what to change, what was checked.
import { Component, type ComponentChildren } from "preact";
import { share } from "../format";
import type { Replay, Report, ReportAnswer } from "../report";
import { KNOWN_SCHEMA } from "../state";
import { Account } from "./account";
import { Findings } from "./findings";
import { Headline } from "./headline";
import { Health } from "./health";
import { Plan } from "./plan";
import { Regimes } from "./regimes";

interface Props {
  readonly report: Report;
  readonly again: ReportAnswer | undefined; // set while the recording is analysed anew
}

export function RecordingPage({ report, again }: Props) {
  return (
    <Boundary key={`${report.run}/${report.source}`} report={report}>
      <Sections report={report} again={again} />
    </Boundary>
  );
}

function Sections({ report, again }: Props) {
  return (
    <article>
      {report.schema > KNOWN_SCHEMA && (
        <section class="notice">
          This tab is older than the report (version {report.schema}, the tab knows {KNOWN_SCHEMA}): some of it may be
          missing here. Reload the page to get the newer tab.
        </section>
      )}
      {again && (
        <section class="notice" role="status">
          The recording has changed and is being analysed again.{" "}
          <progress value={again.progress} max={1} aria-label="Analysed so far" />
        </section>
      )}
      <Headline report={report} />
      {report.health && <Health health={report.health} />}
      {report.account.length > 0 && <Account account={report.account} inSteps={report.window?.basis !== "whole"} />}
      <Findings findings={report.findings} begin={report.window?.begin_ns} judged={report.verdict !== undefined} />
      {report.plan.length > 0 && <Plan plan={report.plan} findings={report.findings} />}
      {report.regimes.length > 0 && <Regimes regimes={report.regimes} />}
      {report.replay && <ReplayNote replay={report.replay} />}
    </article>
  );
}

function ReplayNote({ replay }: { replay: Replay }) {
  return (
    <p class="muted footnote">
      How far to trust the simulation: replaying this recording unchanged misses its step time by {share(replay.error)};{" "}
      {share(replay.frozen_share)} of the time is gaps that the simulation cannot move.
    </p>
  );
}

interface BoundaryProps {
  readonly report: Report;
  readonly children: ComponentChildren;
}

/** A report that cannot be drawn is said to be so, and the list beside it goes on. */
class Boundary extends Component<BoundaryProps, { readonly broken?: { readonly report: Report; readonly message: string } }> {
  override componentDidCatch(error: unknown): void {
    this.setState({ broken: { report: this.props.report, message: error instanceof Error ? error.message : String(error) } });
  }

  override render() {
    const { broken } = this.state;
    if (broken?.report !== this.props.report) return this.props.children;
    return (
      <section class="empty">
        <h1>This report could not be drawn</h1>
        <p>
          The fault is in this tab, not in your recording: the command <code>tb-bottleneck diagnose</code> prints the same
          report as text. <span class="muted">{broken.message}</span>
        </p>
      </section>
    );
  }
}
