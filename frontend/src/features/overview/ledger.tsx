// The ledger of fixes and trials: predicted gains next to measured ones, misses first.
import type { Gain, LedgerCause, LedgerRow, RunEntry } from "../../shared/report";
import { isTrace } from "../../shared/run/groups";
import { comparedName, keyOf } from "../../shared/run/keys";
import type { Session } from "../../shared/run/session";
import { poll } from "../../shared/server/polling";
import { factor, share } from "../../shared/text/format";
import { title } from "../../shared/text/identifier";
import { Request } from "../../shared/widgets/request";
import { SortableTable, type Column } from "../../shared/widgets/sortable_table";

interface Props {
  readonly runs: readonly RunEntry[];
  readonly session: Session;
}

/** Nothing is requested unless something was tried, or a reviewer stated that it is fixed. */
export function Ledger({ runs, session }: Props) {
  const fixed = runs.flatMap((entry) => (entry.review?.states ?? []).filter(({ state, trial }) => state === "fixed" || trial !== "").map(({ cause, fixed_in, trial }) => [keyOf(entry), cause, fixed_in, trial].join(" ")));
  if (fixed.length === 0) return null;
  return (
    <Request subject={fixed.join("\n")} version={undefined} waiting="Loading the ledger of fixes…" send={(signal, onProgress) => poll(() => session.client.ledger(signal), signal, onProgress)}>
      {({ rows, causes }) => <SortableTable caption="Ledger of fixes" rows={rows} columns={columnsOf(runs, session)} initial={{ by: "result", descending: false }} note={<Accuracy causes={causes} />} />}
    </Request>
  );
}

const RESULTS: Readonly<Record<string, string>> = { miss: "Miss", as_predicted: "As predicted", unknown: "Not known" };
const ORDER = Object.keys(RESULTS);
const resultOf = ({ result, expected, measured }: LedgerRow): string => (measured && !expected ? "Not predicted" : (RESULTS[result] ?? result));

function columnsOf(runs: readonly RunEntry[], session: Session): readonly Column<LedgerRow>[] {
  return [
    { key: "fix", title: "Fixed", figure: false, value: causesOf, cell: (row) => <Fix row={row} /> },
    { key: "result", title: "Result", figure: false, value: ({ result }) => ORDER.indexOf(result), cell: resultOf },
    { key: "expected", title: "Predicted", figure: true, value: ({ expected }) => expected?.speedup, cell: ({ expected }) => <Figure gain={expected} /> },
    { key: "measured", title: "Measured", hint: "Typical step time before / after", figure: true, value: ({ measured }) => measured?.speedup, cell: ({ measured }) => <Figure gain={measured} /> },
    { key: "runs", title: "Compare", figure: false, value: ({ run }) => run, cell: (row) => <Pair row={row} runs={runs} session={session} /> },
  ];
}

const causesOf = ({ causes, change }: LedgerRow): string => causes.map((cause) => (cause === "" ? "All findings" : title(cause))).join(", ") || change;

/** So many measurements of a cause tell what to expect of the next prediction. */
const ENOUGH = 8;

function Accuracy({ causes }: { causes: readonly LedgerCause[] }) {
  return (
    <ul class="muted">
      {causes.map(({ cause, measured, inside, median_error }) => (
        <li key={cause}>
          {`Predictions for ${title(cause)} here: ${inside} of ${measured} inside their interval, error ${share(median_error)} in the median`}
          {measured < ENOUGH && `; ${ENOUGH} measurements are needed to expect the same of the next one`}
        </li>
      ))}
    </ul>
  );
}

function Fix({ row }: { row: LedgerRow }) {
  return (
    <>
      {causesOf(row)}
      <small>{[row.causes.length > 0 && row.change && `tried with ${row.change}`, row.because || (row.change ? "" : `stated by ${row.by}`)].filter(Boolean).join(". ")}</small>
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

/** The name of a run without the folder that the monitor creates in it. */
const shown = (run: string): string => run.replace(/\/tb_bottleneck\/[^/]+$/, "");

/** Both runs; a click compares them. */
function Pair({ row: { run, fixed_in }, runs, session }: { row: LedgerRow } & Props) {
  const [before, after] = [run, fixed_in].map((name) => runs.find((entry) => isTrace(entry) && (entry.run === name || comparedName(entry) === name)));
  const text = `${shown(run)} → ${shown(fixed_in)}`;
  if (!before || !after) return <bdi>{text}</bdi>;
  return (
    <button type="button" class="link" onClick={() => (session.choose(keyOf(after)), session.compare(keyOf(before)))}>
      <bdi>{text}</bdi>
    </button>
  );
}
