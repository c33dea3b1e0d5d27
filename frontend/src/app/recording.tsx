// One recording: the answer, where the time goes, what to change, what was checked.
import { Component, type ComponentChildren } from "preact";
import { share } from "../shared/text/format";
import type { Disagreement, Replay, Report, ReportAnswer, RunEntry } from "../shared/report";
import type { Session } from "./session";
import { KNOWN_SCHEMA, type State } from "./state";
import { Account } from "../features/diagnosis/account";
import { Closer } from "./views";
import { Findings } from "../features/diagnosis/findings";
import { Facts, Headline } from "../features/diagnosis/headline";
import { Health } from "../shared/widgets/health";
import { Plan } from "../features/diagnosis/plan";
import { Regimes } from "../features/diagnosis/regimes";
import { Stretches } from "../features/diagnosis/phases";
import { shownView, Tabs } from "./tabs";

interface Props {
  readonly report: Report;
  readonly again: ReportAnswer | undefined; // set while the recording is analysed anew
  /** The recording in the list, and what of it is shown; absent once it is gone: then there is but the report. */
  readonly shown: Shown | undefined;
}

interface Shown {
  readonly entry: RunEntry;
  readonly session: Session;
  readonly state: State;
}

export function RecordingPage(props: Props) {
  const { report } = props;
  return (
    <Boundary key={`${report.run}/${report.source}`} report={report}>
      <Sections {...props} />
    </Boundary>
  );
}

function Sections({ report, again, shown }: Props) {
  const view = shown ? shownView(shown.state.view, report, shown.entry) : "diagnosis";
  return (
    <article>
      {report.schema > KNOWN_SCHEMA && (
        <section class="notice">
          This tab is older than the report (version {report.schema}, the tab knows {KNOWN_SCHEMA}): some of it may be
          missing here. Reload the page to get the newer tab.
        </section>
      )}
      <Headline report={report} again={again} />
      {shown && <Tabs report={report} entry={shown.entry} session={shown.session} view={view} />}
      <Boundary key={view} report={report}>
        {!shown || view === "diagnosis" ? <Diagnosis report={report} session={shown?.session} /> : <Closer report={report} view={view} {...shown} />}
      </Boundary>
    </article>
  );
}

function Diagnosis({ report, session }: { report: Report; session: Session | undefined }) {
  const look = session?.look;
  const facts = report.window && <Facts report={report} />;
  return (
    <div class="panel diagnosis" id="panel" role="tabpanel" aria-label="Diagnosis" tabIndex={-1}>
      {report.verdict && facts}
      {report.health && <Health health={report.health} />}
      {!report.verdict && facts}
      {report.unprofiled?.sentence && <p class="told">{report.unprofiled.sentence}</p>}
      <div class="halves">
        <div class="half">
          <Stretches stretches={report.phases} look={look} />
          {report.account.length > 0 && <Account account={report.account} inSteps={report.window?.basis !== "whole"} />}
        </div>
        <div class="half">
          <Findings findings={report.findings} begin={report.window?.begin_ns} judged={report.verdict !== undefined} look={look} />
          {report.plan.length > 0 && <Plan plan={report.plan} findings={report.findings} now={report.window?.step_ns?.median} />}
          {report.replay && <ReplayNote replay={report.replay} />}
          {session && report.verdict && report.evidence_source !== "telemetry" && <Otherwise ask={() => session.open("whatif")} />}
        </div>
      </div>
      {report.regimes.length > 0 && <Regimes regimes={report.regimes} />}
      {report.disagreements.length > 0 && <Disagreements disagreements={report.disagreements} />}
    </div>
  );
}

/** The plan is about what this run can do as it is; whoever thinks of buying asks something else. */
function Otherwise({ ask }: { ask: () => void }) {
  return (
    <p class="otherwise">
      <button type="button" class="link" onClick={ask}>
        Would another device, more workers, another batch or precision help?
      </button>
    </p>
  );
}

function ReplayNote({ replay }: { replay: Replay }) {
  if (replay.because) return <p class="muted footnote">Nothing is predicted for this recording: {replay.because}</p>;
  return (
    <p class="muted footnote">
      How far to trust the simulation: replaying this recording unchanged misses its time by {share(replay.error)};{" "}
      {share(replay.frozen_share)} of the time is waiting that the simulation cannot move. {replay.host}
    </p>
  );
}

function Disagreements({ disagreements }: { disagreements: readonly Disagreement[] }) {
  return (
    <section>
      <h2>Where trace and telemetry disagree</h2>
      <ul class="disagreements">
        {disagreements.map(({ regime, sentence }) => (
          <li key={regime}>{sentence}</li>
        ))}
      </ul>
    </section>
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
