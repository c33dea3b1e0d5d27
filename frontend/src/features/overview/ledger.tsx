// The ledger of fixes: predicted gains next to measured ones, misses first.
import type { Gain, LedgerRow, RunEntry } from "../../shared/report";
import { comparedName, keyOf, type Key } from "../../shared/run/keys";
import type { Client } from "../../shared/server/api";
import { poll } from "../../shared/server/polling";
import { factor } from "../../shared/text/format";
import { title } from "../../shared/text/identifier";
import { Request } from "../../shared/widgets/request";
import { SortableTable, type Column } from "../../shared/widgets/sortable_table";

interface Props {
  readonly runs: readonly RunEntry[];
  readonly client: Client;
  readonly choose: (key: Key) => void;
}

/** Nothing is requested unless a reviewer stated that something is fixed. */
export function Ledger({ runs, client, choose }: Props) {
  const fixed = runs.flatMap((entry) => (entry.review?.states ?? []).filter(({ state }) => state === "fixed").map(({ cause, fixed_in }) => [keyOf(entry), cause, fixed_in].join(" ")));
  if (fixed.length === 0) return null;
  return (
    <Request subject={fixed.join("\n")} version={undefined} waiting="Loading the ledger of fixes…" send={(signal, onProgress) => poll(() => client.ledger(signal), signal, onProgress)}>
      {({ rows }) => <SortableTable caption="Ledger of fixes" rows={rows} columns={columnsOf(runs, choose)} initial={{ by: "result", descending: false }} />}
    </Request>
  );
}

const RESULTS: Readonly<Record<string, string>> = { miss: "Miss", as_predicted: "As predicted", unknown: "Not known" };
const ORDER = Object.keys(RESULTS);

function columnsOf(runs: readonly RunEntry[], choose: (key: Key) => void): readonly Column<LedgerRow>[] {
  return [
    { key: "fix", title: "Fixed", figure: false, value: causesOf, cell: (row) => <Fix row={row} /> },
    { key: "result", title: "Result", figure: false, value: ({ result }) => ORDER.indexOf(result), cell: ({ result }) => RESULTS[result] ?? result },
    { key: "expected", title: "Predicted", figure: true, value: ({ expected }) => expected?.speedup, cell: ({ expected }) => <Figure gain={expected} /> },
    { key: "measured", title: "Measured", hint: "Typical step time before / after", figure: true, value: ({ measured }) => measured?.speedup, cell: ({ measured }) => <Figure gain={measured} /> },
    { key: "run", title: "Run", figure: false, value: ({ run }) => run, cell: ({ run }) => <RunLink name={run} runs={runs} choose={choose} /> },
    { key: "fixed_in", title: "Fixed in", figure: false, value: (row) => row.fixed_in, cell: (row) => <RunLink name={row.fixed_in} runs={runs} choose={choose} /> },
  ];
}

const causesOf = ({ causes }: LedgerRow): string => causes.map((cause) => (cause === "" ? "All findings" : title(cause))).join(", ");

function Fix({ row }: { row: LedgerRow }) {
  return (
    <>
      {causesOf(row)}
      <small>{row.because || `stated by ${row.by}`}</small>
    </>
  );
}

function Figure({ gain }: { gain: Gain | undefined }) {
  if (!gain) return <span class="muted">not known</span>;
  return (
    <>
      {factor(gain.speedup)}
      <small>
        {factor(gain.low)} to {factor(gain.high)}
      </small>
    </>
  );
}

function RunLink({ name, runs, choose }: { name: string; runs: readonly RunEntry[]; choose: (key: Key) => void }) {
  const entry = runs.find((each) => each.run === name || comparedName(each) === name);
  if (!entry) return <bdi>{name}</bdi>;
  return (
    <button type="button" class="link" onClick={() => choose(keyOf(entry))}>
      <bdi>{name}</bdi>
    </button>
  );
}
