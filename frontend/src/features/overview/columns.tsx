// The columns of the overview's tables.
import type { RunEntry, Verdict } from "../../shared/report";
import { keyOf, type Key } from "../../shared/run/keys";
import { reviewSummary } from "../../shared/run/review";
import { count, duration, factor, shortMoment, shortShare } from "../../shared/text/format";
import { leadOf, runName, shortened, shortRun, sourceParts } from "../../shared/text/names";
import { severity, withoutVerdict } from "../../shared/text/vocabulary";
import { Icon } from "../../shared/widgets/icon";
import type { Column } from "../../shared/widgets/sortable_table";
import { Swatch } from "../../shared/widgets/swatch";
import { changeOf, type Visit } from "./last_visit";
import { recoverable, type Folder } from "./query";

const MAX_NAME = 48; // characters
const RANKS: Readonly<Record<string, number>> = { critical: 3, warning: 2, info: 1, none: 0 };

const gainOf = ({ gain }: RunEntry): number | undefined => gain?.expected;

/** The name of a recording without the folders that all recordings share, as a link to it. */
export function RecordingLink({ entry, prefix, choose }: { entry: RunEntry; prefix: string; choose: (key: Key) => void }) {
  return (
    <button type="button" class="link" title={[`${entry.run}/${entry.source}`, entry.verdict && leadOf(entry.verdict)].filter(Boolean).join("\n")} onClick={() => choose(keyOf(entry))}>
      <bdi>{`${shortRun(entry.run, prefix)} › ${sourceParts(entry.source).name}`}</bdi>
    </button>
  );
}

export function recordingColumns(prefix: string, choose: (key: Key) => void, visit: Visit | undefined): readonly Column<RunEntry>[] {
  return [
    {
      key: "name",
      title: "Recording",
      figure: false,
      value: ({ run, source }) => `${run}/${source}`,
      cell: (entry) => (
        <>
          <RecordingLink entry={entry} prefix={prefix} choose={choose} />
          <small>{[entry.evidence_source, changeOf(entry, visit), reviewSummary(entry)].filter(Boolean).join(", ")}</small>
        </>
      ),
    },
    {
      key: "severity",
      title: "Severity",
      figure: true,
      value: ({ verdict }) => verdict && RANKS[verdict.severity],
      cell: ({ verdict }) => verdict && <SeverityIcon of={verdict} />,
    },
    { key: "verdict", title: "Verdict", figure: false, value: ({ verdict }) => verdict?.title, cell: (entry) => <Outcome entry={entry} /> },
    { key: "share", title: "Share", hint: "Share of the time that the verdict is about", figure: true, value: ({ verdict }) => verdict?.share, cell: ({ verdict }) => verdict && shortShare(verdict.share) },
    { key: "gain", title: "Gain left", hint: "Predicted for the whole plan", figure: true, value: gainOf, cell: (entry) => (recoverable(entry) === undefined ? "" : factor(gainOf(entry)!)) },
    { key: "step", title: "Step", hint: "Mean step time", figure: true, value: ({ step_ns }) => step_ns, cell: ({ step_ns }) => (step_ns === undefined ? "" : duration(step_ns)) },
    { key: "device", title: "Device", figure: false, value: ({ device }) => device || undefined, cell: ({ device }) => device },
    { key: "time", title: "Recorded", figure: true, value: ({ source }) => sourceParts(source).at, cell: ({ source }) => <Moment at={sourceParts(source).at} /> },
    { key: "state", title: "State", figure: false, value: ({ state, live }) => (live ? "live" : state), cell: ({ state, live }) => (live ? "live" : state) },
  ];
}

function Moment({ at }: { at: number | undefined }) {
  return at === undefined ? null : <>{shortMoment(at)}</>;
}

function SeverityIcon({ of }: { of: Judged }) {
  const { text, icon, tone } = severity(of);
  return (
    <span class={`tone-${tone}`} title={text}>
      <Icon name={icon} />
      <span class="visually-hidden">{text}</span>
    </span>
  );
}

/** The verdict with the action, or why there is none. */
function Outcome({ entry: { verdict, action, state, health: status, reason } }: { entry: RunEntry }) {
  if (!verdict) return <span class="muted">{state === "done" ? withoutVerdict(status, reason) : state}</span>;
  return (
    <>
      <Swatch regime={verdict.regime} />
      {verdict.title}
      {action && <small>{action}</small>}
    </>
  );
}

export function folderColumns(open: (words: string) => void): readonly Column<Folder>[] {
  return [
    {
      key: "name",
      title: "Folder",
      figure: false,
      value: ({ name }) => name,
      cell: ({ name }) => (
        <button type="button" class="link" title={name} onClick={() => open(name)}>
          <bdi>{shortened(runName(name), MAX_NAME)}</bdi>
        </button>
      ),
    },
    { key: "count", title: "Recordings", figure: true, value: ({ entries }) => entries.length, cell: ({ entries }) => count(entries.length) },
    { key: "severity", title: "Worst", figure: true, value: (folder) => RANKS[worst(folder)?.severity ?? ""], cell: (folder) => <Worst folder={folder} /> },
    { key: "gain", title: "Gain left", hint: "The largest of the folder", figure: true, value: largestGain, cell: (folder) => (largestGain(folder) ? factor(largestGain(folder)!) : "") },
    { key: "step", title: "Steps, oldest to newest", hint: "Mean step times of the recordings", figure: true, value: latestStep, cell: (folder) => <Trend folder={folder} /> },
  ];
}

type Judged = Pick<Verdict, "severity" | "regime">;

function worst({ entries }: Folder): Judged | undefined {
  const verdicts = entries.flatMap(({ verdict }) => (verdict ? [verdict] : []));
  return verdicts.sort((a, b) => (RANKS[b.severity] ?? 0) - (RANKS[a.severity] ?? 0))[0];
}

function Worst({ folder }: { folder: Folder }) {
  const verdict = worst(folder);
  return verdict ? <SeverityIcon of={verdict} /> : null;
}

const largestGain = ({ entries }: Folder): number | undefined => {
  const gains = entries.flatMap((entry) => (recoverable(entry) === undefined ? [] : [gainOf(entry)!]));
  return gains.length > 0 ? Math.max(...gains) : undefined;
};

const byTime = ({ entries }: Folder): readonly RunEntry[] =>
  entries.filter(({ step_ns }) => step_ns !== undefined).sort((a, b) => (sourceParts(a.source).at ?? 0) - (sourceParts(b.source).at ?? 0));

const latestStep = (folder: Folder): number | undefined => byTime(folder).at(-1)?.step_ns;

/** The first and the last step time, if there are several. */
function Trend({ folder }: { folder: Folder }) {
  const steps = byTime(folder).map(({ step_ns }) => step_ns!);
  if (steps.length === 0) return null;
  const last = duration(steps.at(-1)!);
  return steps.length === 1 ? <>{last}</> : <>{`${duration(steps[0]!)} → ${last}`}</>;
}

