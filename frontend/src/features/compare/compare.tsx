// The chosen recording, B, against another one, A: which one, what is said of the two, and what shows it. Or in a row with several.
import { useMemo, useState } from "preact/hooks";
import { settled } from "../../shared/server/polling";
import { counterpart } from "./candidates";
import { seekCause } from "../../shared/page/scroll_to_cause";
import { runName, sourceName } from "../../shared/text/names";
import type { Comparison, Report, RunEntry } from "../../shared/report";
import { membersOf } from "../series/members";
import { FEWEST } from "../series/series_keys";
import type { Session } from "../../app/session";
import { addStyle } from "../../shared/page/style_sheet";
import { keyOf, type Key } from "../../app/state";
import charts from "../../shared/style/charts.css";
import closer from "../../shared/style/view.css";
import sheet from "./compare.css";
import { Awaited } from "../../shared/widgets/request";
import { Causes } from "./causes";
import { Chooser } from "./chooser";
import { Context, Notes, Outcome, Refused, Sides, type BothProps } from "./outcome";
import { Promised } from "./expected";
import { WaterfallTable } from "../../shared/widgets/waterfall_table";
import { Series } from "../series/series";

addStyle(charts);
addStyle(closer);
addStyle(sheet);

interface Props {
  readonly session: Session;
  readonly entry: RunEntry; // B
  readonly report: Report; // of B
  readonly runs: readonly RunEntry[];
  readonly against: Key | undefined; // A
  readonly row: readonly Key[] | undefined; // instead of the two
}

interface Told {
  readonly told: Comparison;
  readonly before: Report | undefined; // A's report, for what it calls its causes
}

export function CompareView({ session, entry, report, runs, against, row }: Props) {
  const [taken, setTaken] = useState<readonly Key[]>([]); // what the chooser begins with
  const other = counterpart(runs, against, entry);
  // The list is another one at each round: what is asked again rests on what of A can change.
  const members = membersOf(runs, row, entry);
  const changing = members ? members.entries.map(({ state, step_ns }) => `${state} ${step_ns}`).join() : `${other?.state} ${other?.step_ns}`;
  const since = useMemo(() => ({}), [report, changing]);
  const chooseAgain = (keys: readonly Key[]) => {
    setTaken(keys);
    session.compare(undefined);
  };
  if (members && members.entries.length >= FEWEST) {
    return <Series session={session} members={members} chosen={entry} since={since} chooseOthers={() => chooseAgain(members.entries.map(keyOf))} />;
  }
  if (!other) {
    const missing = members?.missing[0] ?? (against === keyOf(entry) ? undefined : against);
    return <Chooser key={taken.join()} runs={runs} chosen={entry} missing={missing} taken={taken} session={session} />;
  }
  return (
    <div class="comparison">
      <div class="doings">
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
      <Awaited
        about={`${other.id} ${entry.id} compare`}
        since={since}
        waiting={`Comparing with ${runName(other.run)} › ${sourceName(other.source)}: both recordings are read…`}
        ask={(signal, tell) => asked(session, other.id, entry.id, signal, tell)}
      >
        {({ told, before }) => <Both session={session} a={other} b={entry} told={told} before={before} after={report} />}
      </Awaited>
    </div>
  );
}

async function asked(session: Session, a: string, b: string, signal: AbortSignal, tell: (progress: number) => void) {
  const answer = await settled(() => session.client.compare(a, b, signal), signal, tell);
  if (answer.kind !== "ok") return answer;
  const told = answer.value.comparison;
  if (!told) return { kind: "failed", message: "The server’s answer holds no comparison. Reload the page: it may be older than the server." } as const;
  const report = await session.client.report(a, signal); // without it causes go by their names
  const value: Told = { told, before: report.kind === "ok" ? report.value.report : undefined };
  return { kind: "ok", value } as const;
}

function Both({ session, ...both }: Omit<BothProps, "show"> & { readonly session: Session }) {
  const { told, a, before, after } = both;
  const show = (side: "a" | "b", cause: string | undefined) => {
    if (side === "a") session.choose(keyOf(a));
    session.open("diagnosis");
    if (cause !== undefined) seekCause(cause);
  };
  if (!told.comparable) {
    return (
      <>
        <Sides {...both} show={show} />
        <Refused {...both} show={show} />
      </>
    );
  }
  return (
    <>
      <Sides {...both} show={show} />
      <Outcome {...both} show={show} />
      <WaterfallTable told={told} />
      {told.expected && <Promised told={told} expected={told.expected} before={before} after={after} />}
      <Causes changed={told.causes} before={before} after={after} show={show} />
      <Context rows={told.context} />
      <Notes told={told} />
    </>
  );
}
