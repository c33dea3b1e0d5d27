// The columns of the overview's tables.
import type { ComponentChildren } from "preact";
import type { RunEntry, Verdict } from "../../shared/report";
import { reviewSummary } from "../../shared/run/review";
import { evidenceOf, notJudged, type TrainingEntry } from "../../shared/run/trainings";
import { bytes, count, duration, factor, shortMoment, shortShare } from "../../shared/text/format";
import { leadingAlert, leadOf, shortened, titleOf } from "../../shared/text/names";
import { severity, withoutVerdict } from "../../shared/text/vocabulary";
import { Icon } from "../../shared/widgets/icon";
import type { Column } from "../../shared/widgets/sortable_table";
import { Sparkline } from "../../shared/widgets/sparkline";
import { Swatch } from "../../shared/widgets/swatch";
import { GROUPINGS, headroomBytes, peakBytes, samplesPerSecond, samplesPerStep, type Grouping, type Known } from "./facts";
import { changeOf, type Visit } from "./last_visit";
import { isBound, recoverable, severityRank, type Group } from "./query";
import { Stalled } from "../../shared/widgets/stalled";

const MAX_NAME = 48; // characters

export type Open = (training: TrainingEntry) => void;

/** A gain as text; an upper bound is marked. */
export const gainText = (entry: RunEntry): string => (isBound(entry) ? `≤${factor(entry.gain!.high)}` : factor(entry.gain!.expected));

const gainOf = ({ gain }: RunEntry): number | undefined => gain?.expected;

/** The name of a training without the folders that all trainings share, as a link to it. */
export function TrainingLink({ entry, open }: { entry: TrainingEntry; open: Open }) {
  const { run, source } = entry.named;
  return (
    <button type="button" class="link" title={[`${run}/${source}`, entry.verdict && leadOf(entry.verdict)].filter(Boolean).join("\n")} onClick={() => open(entry)}>
      <bdi>{breakable(shortened([entry.folder, entry.label].filter(Boolean).join("/"), MAX_NAME))}</bdi>
    </button>
  );
}

const MAX_UNBROKEN = 20; // characters that fit a narrow column

/** A path that a narrow column breaks behind its folders, and long names in it between their words. */
function breakable(path: string): ComponentChildren {
  const parts = path.split(/(?<=\/)/).flatMap((part) => (part.length > MAX_UNBROKEN ? part.split(/(?<=[_-])/) : [part]));
  return parts.map((part, index) => (index > 0 ? [<wbr key={index} />, part] : part));
}

/** A figure, or an empty cell that says why it is not known. */
function figure(key: string, title: string, hint: string, of: (entry: TrainingEntry) => Known, text: (value: number, entry: TrainingEntry) => string): Column<TrainingEntry> {
  const value = (entry: TrainingEntry) => {
    const known = of(entry);
    return "value" in known ? known.value : undefined;
  };
  const cell = (entry: TrainingEntry) => {
    const known = of(entry);
    return "value" in known ? text(known.value, entry) : <Unknown because={known.missing} />;
  };
  return { key, title, hint, figure: true, value, cell };
}

function Unknown({ because }: { because: string }) {
  return (
    <span class="muted" role="img" aria-label={`Not known: ${because}`} title={because}>
      –
    </span>
  );
}

const orWhy = (value: number | undefined, missing: string): Known => (value === undefined ? { missing } : { value });

/** The columns that can be chosen; the name is always there. */
export const DEFAULT_COLUMNS: readonly string[] = ["severity", "verdict", "gain", "step", "rate", "memory", "device", "time", "state"];

export function trainingColumns(open: Open, visit: Visit | undefined): readonly Column<TrainingEntry>[] {
  return [
    {
      key: "name",
      title: "Training",
      figure: false,
      value: ({ named: { run, source } }) => `${run}/${source}`,
      cell: (entry) => (
        <>
          <TrainingLink entry={entry} open={open} />
          <Stalled members={entry.members} />
          <small>{[evidenceOf(entry), changeOf(entry, visit), reviewSummary(entry)].filter(Boolean).join(", ")}</small>
        </>
      ),
    },
    {
      key: "severity",
      title: "Severity",
      figure: true,
      value: ({ verdict }) => severityRank(verdict),
      cell: ({ verdict }) => verdict && <SeverityIcon of={verdict} />,
    },
    { key: "verdict", title: "Verdict", figure: false, value: ({ verdict }) => verdict && titleOf(verdict), cell: (entry) => <Outcome entry={entry} /> },
    figure("share", "Share", "Share of the time that the verdict is about", ({ verdict }) => orWhy(verdict?.share, "There is no verdict."), shortShare),
    figure("lost", "Lost", "Share of the time in which the device does not compute", ({ lost_share }) => orWhy(lost_share, "Nothing was measured."), shortShare),
    figure("gain", "To gain", "Predicted for the whole plan; ≤ marks an upper bound", (entry) => orWhy(recoverable(entry) === undefined ? undefined : gainOf(entry), "No gain is predicted."), (_, entry) => gainText(entry)),
    figure("step", "Step", "Mean step time, without the profiler if measured", ({ step_ns }) => orWhy(step_ns, "No step was timed."), duration),
    figure("rate", "Samples/s", "Samples per step / mean step time, of one process", samplesPerSecond, count),
    figure("batch", "Samples per step", "Of one process", samplesPerStep, count),
    figure("memory", "Memory", "Device memory at the peak", peakBytes, bytes),
    figure("headroom", "Memory left", "Size of the device memory - peak", headroomBytes, bytes),
    { key: "device", title: "Device", figure: false, value: ({ device }) => device || undefined, cell: ({ device }) => device || <Unknown because="The device was not recorded." /> },
    {
      key: "revision",
      title: "Git revision",
      figure: false,
      value: ({ revision }) => revision,
      cell: ({ revision }) => (revision ? <code title={revision}>{shortened(revision, MAX_REVISION)}</code> : <Unknown because="The training recorded no revision; the monitor does." />),
    },
    figure("time", "Recorded", "When the file was written", (entry) => ({ value: entry.at }), (at) => shortMoment(at)),
    { key: "state", title: "State", hint: "Of the findings, as reviewed", figure: false, value: stateOf, cell: stateOf },
  ];
}

const MAX_REVISION = 12; // characters

/** The states of the findings; "live" or the progress before that. */
function stateOf({ state, live, open_findings, review }: TrainingEntry): string {
  if (live) return "live";
  if (state !== "done") return state;
  const reviewed = (["accepted", "fixed"] as const).filter((word) => review?.states.some((each) => each.state === word));
  return [...(open_findings ? ["open"] : []), ...reviewed].join(", ");
}

function SeverityIcon({ of }: { of: Judged }) {
  const { text, icon, tone } = severity(of);
  return (
    <span class={`tone-${tone}`} role="img" aria-label={text} title={text}>
      <Icon name={icon} />
    </span>
  );
}

/** The verdict with the action, or why there is none. */
function Outcome({ entry }: { entry: TrainingEntry }) {
  const { verdict, action, state, health: status, reason, evidence_source } = entry;
  if (state === "done" && notJudged(entry)) return <span class="muted">{notJudged(entry)}</span>;
  if (!verdict) return <span class="muted">{state !== "done" ? state : evidence_source === "snapshot" && status === "ok" ? "memory only" : withoutVerdict(status, reason)}</span>;
  const alert = leadingAlert(verdict);
  const advice = alert?.action || action;
  return (
    <>
      {!alert && <Swatch regime={verdict.regime} />}
      {titleOf(verdict)}
      {advice && <small>{advice}</small>}
    </>
  );
}

export function groupColumns(by: Grouping, open: (group: string) => void): readonly Column<Group>[] {
  const { title } = GROUPINGS[by];
  return [
    {
      key: "name",
      title: title.charAt(0).toUpperCase() + title.slice(1),
      figure: false,
      value: ({ name }) => name,
      cell: ({ name }) => (
        <button type="button" class="link" title={name} onClick={() => open(name)}>
          <bdi>{name === "" ? "(not known)" : shortened(name, MAX_NAME)}</bdi>
        </button>
      ),
    },
    { key: "count", title: "Trainings", figure: true, value: ({ entries }) => entries.length, cell: ({ entries }) => count(entries.length) },
    { key: "severity", title: "Worst", figure: true, value: (group) => severityRank(worst(group)), cell: (group) => <Worst group={group} /> },
    { key: "gain", title: "To gain", hint: "The largest of the group", figure: true, value: largestGain, cell: (group) => (largestGain(group) ? factor(largestGain(group)!) : "") },
    { key: "step", title: "Steps, oldest to newest", hint: "Mean step times of the trainings, in order of time", figure: true, value: latestStep, cell: (group) => <Trend group={group} /> },
  ];
}

type Judged = Pick<Verdict, "severity" | "regime" | "memory_alert">;

function worst({ entries }: Group): Judged | undefined {
  const verdicts = entries.flatMap(({ verdict }) => (verdict ? [verdict] : []));
  return verdicts.sort((a, b) => (severityRank(b) ?? 0) - (severityRank(a) ?? 0))[0];
}

function Worst({ group }: { group: Group }) {
  const verdict = worst(group);
  return verdict ? <SeverityIcon of={verdict} /> : null;
}

const largestGain = ({ entries }: Group): number | undefined => {
  const gains = entries.flatMap((entry) => (recoverable(entry) === undefined ? [] : [gainOf(entry)!]));
  return gains.length > 0 ? Math.max(...gains) : undefined;
};

const stepsOf = new WeakMap<Group, readonly number[]>();

/** The step times in order of time. */
function steps(group: Group): readonly number[] {
  let found = stepsOf.get(group);
  if (!found) {
    const timed = group.entries.flatMap((entry) => (entry.step_ns === undefined ? [] : [{ at: entry.at, ns: entry.step_ns }]));
    found = timed.sort((a, b) => a.at - b.at).map(({ ns }) => ns);
    stepsOf.set(group, found);
  }
  return found;
}

const latestStep = (group: Group): number | undefined => steps(group).at(-1);

/** The step times as a line, and the first and the last one. */
function Trend({ group }: { group: Group }): ComponentChildren {
  const all = steps(group);
  const [first, last] = [all[0], all.at(-1)];
  if (first === undefined || last === undefined) return null;
  return (
    <span class="trend">
      <Sparkline values={all} /> {all.length === 1 ? duration(last) : `${duration(first)} → ${duration(last)}`}
    </span>
  );
}
