// The page of one recording: its headline, its tabs and the selected view.
import { Component, type ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";
import { Diagnosis } from "../features/diagnosis/diagnosis";
import { Headline } from "../features/diagnosis/headline";
import { Share } from "../features/share/share";
import { liveJobOf } from "../shared/live";
import type { Report, ReportAnswer } from "../shared/report";
import { keyOf } from "../shared/run/keys";
import { trainingOf } from "../shared/run/trainings";
import { hasView, missingFrom, titleOf } from "./available_views";
import { Evidence } from "./evidence";
import { KNOWN_SCHEMA } from "./state";
import { useJob } from "./use_job";
import { Tabs } from "./tabs";
import { LiveNotice, Phases, RunTime, ViewPanel, type Shown } from "./view_registry";

interface Props {
  readonly report: Report;
  readonly analysis: ReportAnswer | undefined; // set while the recording is analysed again
  /** The recording in the list. Undefined once it is gone: then only the report is left. */
  readonly shown: Omit<Shown, "report"> | undefined;
}

export function RecordingPage(props: Props) {
  const { report } = props;
  return (
    <ErrorBoundary key={`${report.run}/${report.source}`} report={report}>
      <Content {...props} />
    </ErrorBoundary>
  );
}

function Content({ report, analysis, shown }: Props) {
  const training = shown?.state.list && trainingOf(shown.state.list, keyOf(shown.entry));
  const job = useJob(shown?.session.client, report, shown?.entry);
  const notInList = training?.job !== undefined && training.verdict === undefined && job !== undefined && job !== "pending";
  useEffect(() => {
    if (notInList) shown?.session.refresh(); // it was judged just now, and the list beside it says that it was not
  }, [notInList]);
  const missing = shown && missingFrom(shown.state.view, report, shown.entry);
  const view = shown && missing === undefined ? shown.state.view : "diagnosis";
  const live = liveJobOf(shown?.state.live, report.run);
  const brief = view !== undefined && view !== "diagnosis"; // the content of another view begins at the top
  const evidence = training && shown && (
    <Evidence training={training} shown={shown.entry} brief={brief} choose={(recording) => shown.session.choose(keyOf(recording), hasView(view!, recording) ? view! : "diagnosis")} />
  );
  const isNews = live !== undefined && live.verdict.cause !== "ended" && (!brief || live.verdict.severity !== "none");
  return (
    <article class={brief ? "brief" : ""}>
      {isNews && <LiveNotice job={live} logdir={shown?.state.list?.logdir ?? "LOGDIR"} open={shown && view !== "live" ? () => shown.session.open("live") : undefined} />}
      {report.schema > KNOWN_SCHEMA && (
        <section class="notice">
          This tab is older than the report (schema {report.schema}, the tab knows {KNOWN_SCHEMA}), so parts of it may be
          missing here. Reload the page to get the newer tab.
        </section>
      )}
      <Headline report={report} brief={brief} job={job} openJob={shown && view !== "job" ? () => shown.session.open("job") : undefined} analysis={analysis}>
        {brief && evidence}
        <Share report={report} />
      </Headline>
      {!brief && evidence}
      {shown && <Tabs report={report} entry={shown.entry} training={training} session={shown.session} view={view} />}
      {missing !== undefined && (
        <section class="notice" role="status">
          This recording has no view {titleOf(shown!.state.view)}: {missing}
        </section>
      )}
      <ErrorBoundary key={view} report={report}>
        {shown ? (
          <ViewPanel view={view} report={report} {...shown} />
        ) : (
          <div class="panel diagnosis" id="panel" role="tabpanel" aria-label={titleOf("diagnosis")} tabIndex={-1}>
            <Diagnosis report={report} phases={report.phases.length > 1 && <Phases phases={report.phases} showFocus={undefined} />} run={report.run_time && <RunTime run_time={report.run_time} />} showFocus={undefined} predict={undefined} reviewed={undefined} />
          </div>
        )}
      </ErrorBoundary>
    </article>
  );
}

interface BoundaryProps {
  readonly report: Report;
  readonly children: ComponentChildren;
}

/** Shows a message if a report cannot be drawn, so that the list beside it keeps working. */
class ErrorBoundary extends Component<BoundaryProps, { readonly broken?: { readonly report: Report; readonly message: string } }> {
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
          This is an error of the tab, not of your recording: the command <code>tb-bottleneck diagnose</code> prints the same
          report as text. <span class="muted">{broken.message}</span>
        </p>
      </section>
    );
  }
}
