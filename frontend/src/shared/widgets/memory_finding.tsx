// A problem with the memory: its evidence and its fix.
import type { ComponentChildren } from "preact";
import type { MemoryFinding } from "../report";
import { evidence as valueOf } from "../text/format";
import { CodeBlock } from "./code_block";

interface Props {
  readonly finding: MemoryFinding;
  /** What stands beside the title. */
  readonly badge?: ComponentChildren;
  /** What stands at the end. */
  readonly children?: ComponentChildren;
}

export function MemoryFindingCard({ finding: { cause, title, severity, evidence, fix }, badge, children }: Props) {
  return (
    <section class="card finding" data-cause={cause} data-severity={severity}>
      <header>
        <h3>{title}</h3>
        {badge}
      </header>
      <dl class="memory-evidence">
        {evidence.map((item) => (
          <div key={item.label}>
            <dt>{item.label}</dt>
            <dd>{valueOf(item)}</dd>
          </div>
        ))}
      </dl>
      {fix && (
        <>
          <p class="summary">{fix.summary}</p>
          {fix.code && <CodeBlock text={fix.code} label={`code that fixes “${title}”`} />}
          {fix.confirm && (
            <p class="confirm">
              <strong>To confirm:</strong> {fix.confirm}
            </p>
          )}
        </>
      )}
      {children}
    </section>
  );
}
