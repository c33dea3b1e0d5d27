// Causes found in only one of the two runs. Each links to its card in the diagnosis of that run.
import { colourOf } from "../../shared/colours";
import type { CausesChanged, Report } from "../../shared/report";
import { causeTitle, findingOf } from "../../shared/text/causes";
import { share } from "../../shared/text/format";

interface Props {
  readonly changed: CausesChanged | undefined;
  readonly reportA: Report | undefined;
  readonly reportB: Report;
  readonly show: (run: "a" | "b", cause: string) => void;
}

export function Causes({ changed, reportA, reportB, show }: Props) {
  const [lost, gained] = [changed?.lost ?? [], changed?.gained ?? []];
  return (
    <section class="changed-causes">
      <h2>Changed causes</h2>
      {lost.length + gained.length === 0 ? (
        <p class="muted">Both runs have the same causes.</p>
      ) : (
        <div class="pair">
          <CauseList name="Only in A" empty="All causes of A are also in B." causes={lost} report={reportA} show={(cause) => show("a", cause)} />
          <CauseList name="Only in B" empty="All causes of B are also in A." causes={gained} report={reportB} show={(cause) => show("b", cause)} />
        </div>
      )}
    </section>
  );
}

interface CauseListProps {
  readonly name: string;
  readonly empty: string;
  readonly causes: readonly string[];
  readonly report: Report | undefined;
  readonly show: (cause: string) => void;
}

function CauseList({ name, empty, causes, report, show }: CauseListProps) {
  return (
    <div>
      <h3>{name}</h3>
      {causes.length === 0 && <p class="muted">{empty}</p>}
      <ul>
        {causes.map((cause) => {
          const finding = findingOf(report, cause);
          return (
            <li key={cause} style={{ borderInlineStartColor: colourOf(finding?.regime ?? "") }}>
              {finding ? (
                <button type="button" class="link" onClick={() => show(cause)}>
                  {causeTitle(cause, report)}
                  <span class="visually-hidden">: show it in the diagnosis</span>
                </button>
              ) : (
                causeTitle(cause)
              )}
              {finding && <small>costs {share(finding.cost_share)} of the analysed time</small>}
            </li>
          );
        })}
      </ul>
    </div>
  );
}
