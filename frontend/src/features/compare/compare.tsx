// The comparison of the chosen recording B with another one, A; of a series of recordings; or with the same run under other conditions.
import { useMemo, useState } from "preact/hooks";
import { scrollToCause } from "../../shared/page/scroll_to_cause";
import { addStyle } from "../../shared/page/style_sheet";
import type { Comparison, Report, RunEntry } from "../../shared/report";
import { isTrace } from "../../shared/run/groups";
import { keyOf, type Key } from "../../shared/run/keys";
import type { Session } from "../../shared/run/session";
import { poll } from "../../shared/server/polling";
import charts from "../../shared/style/charts.css";
import comparisonStyle from "../../shared/style/comparison.css";
import viewStyle from "../../shared/style/view.css";
import { runName, sourceName } from "../../shared/text/names";
import { MemoryDifference } from "../../shared/widgets/memory_difference";
import { Notes } from "../../shared/widgets/notes";
import { lazyView } from "../../shared/widgets/lazy_view";
import { Request } from "../../shared/widgets/request";
import { WaterfallTable } from "../../shared/widgets/waterfall_table";
import { membersOf } from "./series/members";
import { Series } from "./series/series";
import { MIN_RUNS } from "./series/series_keys";
import { baselineOf } from "./candidates";
import { Causes } from "./causes";
import { Chooser } from "./chooser";
import sheet from "./compare.css";
import { ExpectedTime } from "./expected";
import { ComparedRuns, Environment, NotComparable, Outcome, type PairProps } from "./outcome";

addStyle(charts);
addStyle(viewStyle);
addStyle(comparisonStyle);
addStyle(sheet);

const WhatIf = lazyView(async () => (await import("./what_if/what_if")).WhatIfView);

interface Props {
  readonly session: Session;
  readonly entry: RunEntry; // B
  readonly report: Report; // of B
  readonly runs: readonly RunEntry[];
  readonly baseline: Key | undefined; // A
  readonly series: readonly Key[] | undefined; // instead of A and B
  readonly conditions: string | undefined; // of a prediction, as the address spells them
}

interface Pair {
  readonly comparison: Comparison;
  readonly reportA: Report | undefined; // for the titles of its causes
}

export function CompareView({ session, entry, report, runs, baseline, series, conditions }: Props) {
  const [selection, setSelection] = useState<readonly Key[]>([]); // the initial selection of the chooser
  const other = baselineOf(runs, baseline, entry);
  // The list is a new object in each round. The comparison is requested again only if its recordings have changed.
  const members = membersOf(runs, series, entry);
  const versions = members ? members.entries.map(({ state, step_ns }) => `${state} ${step_ns}`).join() : `${other?.state} ${other?.step_ns}`;
  const version = useMemo(() => ({}), [report, versions]);
  const chooseAgain = (keys: readonly Key[]) => {
    setSelection(keys);
    session.compare(undefined);
  };
  if (members && members.entries.length >= MIN_RUNS) {
    return <Series session={session} members={members} chosen={entry} version={version} chooseOthers={() => chooseAgain(members.entries.map(keyOf))} />;
  }
  if (!other) {
    const missing = members?.missing[0] ?? (baseline === keyOf(entry) ? undefined : baseline);
    const chooser = <Chooser key={selection.join()} runs={runs} chosen={entry} missing={missing} initialSelection={selection} session={session} />;
    const whatIf = report.verdict && isTrace(entry) && <WhatIf session={session} entry={entry} report={report} conditions={conditions} />;
    // What was asked for comes first.
    return conditions === undefined ? <>{chooser}{whatIf}</> : <>{whatIf}{chooser}</>;
  }
  return (
    <div class="comparison">
      <div class="actions">
        <button type="button" onClick={() => session.choose(keyOf(other))}>
          Swap A and B
        </button>
        <button type="button" onClick={() => chooseAgain([])}>
          Choose another
        </button>
        <button type="button" onClick={() => chooseAgain([keyOf(other)])}>
          Add a third
        </button>
      </div>
      <Request
        subject={`${other.id} ${entry.id} compare`}
        version={version}
        waiting={`Reading both recordings to compare with ${runName(other.run)} › ${sourceName(other.source)}…`}
        send={(signal, onProgress) => requestPair(session, other.id, entry.id, signal, onProgress)}
      >
        {({ comparison, reportA }) => <PairPage session={session} a={other} b={entry} comparison={comparison} reportA={reportA} reportB={report} />}
      </Request>
    </div>
  );
}

async function requestPair({ client }: Session, a: string, b: string, signal: AbortSignal, onProgress: (progress: number) => void) {
  const result = await poll(() => client.compare(a, b, signal), signal, onProgress);
  if (result.kind !== "ok") return result;
  const { comparison } = result.value;
  if (!comparison) return { kind: "failed", message: "The server’s response contains no comparison. Reload the page: it may be older than the server." } as const;
  const report = await client.report(a, signal); // without it causes are shown by their identifiers
  const value: Pair = { comparison, reportA: report.kind === "ok" ? report.value.report : undefined };
  return { kind: "ok", value } as const;
}

function PairPage({ session, ...pair }: Omit<PairProps, "show"> & { readonly session: Session }) {
  const { comparison, a, reportA, reportB } = pair;
  const [memoryA, memoryB] = [reportA, reportB].map((report) => (report?.memory?.parts.length ? report.memory : undefined));
  const show = (run: "a" | "b", cause: string | undefined) => {
    if (run === "a") session.choose(keyOf(a));
    session.open("diagnosis");
    if (cause !== undefined) scrollToCause(cause);
  };
  if (!comparison.comparable) {
    return (
      <>
        <ComparedRuns {...pair} show={show} />
        <NotComparable {...pair} show={show} />
      </>
    );
  }
  return (
    <>
      <ComparedRuns {...pair} show={show} />
      <Outcome comparison={comparison} />
      <WaterfallTable times={comparison} />
      {comparison.expected && <ExpectedTime comparison={comparison} expected={comparison.expected} reportA={reportA} reportB={reportB} />}
      <Causes changed={comparison.causes} reportA={reportA} reportB={reportB} show={show} />
      {memoryA && memoryB && <MemoryDifference a={memoryA} b={memoryB} />}
      <Environment rows={comparison.context.filter(({ key }) => !memoryA || !memoryB || !key.startsWith("memory_"))} />
      <Notes lines={comparison.notes} title="Notes" />
    </>
  );
}
