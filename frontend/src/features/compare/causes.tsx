// Causes that one side has and the other has not; each leads to its card in that side's diagnosis.
import { colourOf } from "../../shared/colours";
import { causeTitle, findingOf } from "./summary";
import { share } from "../../shared/text/format";
import type { CausesChanged, Report } from "../../shared/report";

interface Props {
  readonly changed: CausesChanged | undefined;
  readonly before: Report | undefined;
  readonly after: Report;
  readonly show: (side: "a" | "b", cause: string) => void;
}

export function Causes({ changed, before, after, show }: Props) {
  const [lost, gained] = [changed?.lost ?? [], changed?.gained ?? []];
  return (
    <section class="changed-causes">
      <h2>Causes that came and went</h2>
      {lost.length + gained.length === 0 ? (
        <p class="muted">No cause was found on one side only.</p>
      ) : (
        <div class="pair">
          <Some name="In A, gone in B" nothing="None of A’s causes is gone in B." causes={lost} report={before} show={(cause) => show("a", cause)} />
          <Some name="New in B" nothing="B has no cause that A has not." causes={gained} report={after} show={(cause) => show("b", cause)} />
        </div>
      )}
    </section>
  );
}

interface SomeProps {
  readonly name: string;
  readonly nothing: string;
  readonly causes: readonly string[];
  readonly report: Report | undefined;
  readonly show: (cause: string) => void;
}

function Some({ name, nothing, causes, report, show }: SomeProps) {
  return (
    <div>
      <h3>{name}</h3>
      {causes.length === 0 && <p class="muted">{nothing}</p>}
      <ul>
        {causes.map((cause) => {
          const finding = findingOf(report, cause);
          return (
            <li key={cause} style={{ borderInlineStartColor: colourOf(finding?.regime ?? "") }}>
              {finding ? (
                <button type="button" class="link" onClick={() => show(cause)}>
                  {causeTitle(cause, report)}
                  <span class="spoken">: show it in that diagnosis</span>
                </button>
              ) : (
                causeTitle(cause)
              )}
              {finding && <small>costs {share(finding.cost_share)} of the time judged there</small>}
            </li>
          );
        })}
      </ul>
    </div>
  );
}
