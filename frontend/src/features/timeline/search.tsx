// Searches the timeline: the server finds the rows, the buttons go from one to the next.
import { useEffect, useRef, useState } from "preact/hooks";
import type { FindAnswer, FoundRow, RunEntry } from "../../shared/report";
import type { Span } from "../../shared/run/viewport";
import type { Client } from "../../shared/server/api";
import { poll } from "../../shared/server/polling";
import { count, duration } from "../../shared/text/format";

interface Props {
  readonly client: Client;
  readonly entry: RunEntry;
  readonly show: (row: Span) => void;
}

const TYPING_MS = 350;

export function Search({ client, entry, show }: Props) {
  const [text, setText] = useState("");
  const [answer, setAnswer] = useState<FindAnswer>();
  const [problem, setProblem] = useState("");
  const [at, setAt] = useState(-1);
  const shown = useRef(show);
  shown.current = show;
  useEffect(() => {
    const controller = new AbortController();
    setAnswer(undefined);
    setProblem("");
    setAt(-1);
    if (!text.trim()) return undefined;
    const timer = setTimeout(async () => {
      const result = await poll(() => client.find(entry.id, text.trim(), controller.signal), controller.signal, () => undefined);
      if (controller.signal.aborted) return;
      if (result.kind === "ok") setAnswer(result.value);
      if (result.kind === "failed") setProblem(result.message);
    }, TYPING_MS);
    return () => (clearTimeout(timer), controller.abort());
  }, [text, entry.id]);
  const rows = answer?.rows ?? [];
  const go = (step: number) => {
    if (rows.length === 0) return;
    const next = at < 0 ? (step > 0 ? 0 : rows.length - 1) : (at + step + rows.length) % rows.length;
    setAt(next);
    shown.current(spanOf(rows[next]!));
  };
  return (
    <span class="timeline-search" role="search">
      <input
        type="search"
        placeholder="Search"
        aria-label="Search the timeline. Enter shows the next row that was found."
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key !== "Enter") return;
          go(event.shiftKey ? -1 : 1);
          event.preventDefault();
        }}
      />
      {answer && rows.length > 0 && (
        <>
          <button type="button" aria-label="Previous one" title="Previous one (Shift+Enter)" onClick={() => go(-1)}>↑</button>
          <button type="button" aria-label="Next one" title="Next one (Enter)" onClick={() => go(1)}>↓</button>
        </>
      )}
      <span class="muted" role="status">
        {problem || (answer && status(answer, at))}
      </span>
    </span>
  );
}

const spanOf = ({ begin_ns, end_ns }: FoundRow): Span => ({ begin: begin_ns, end: Math.max(end_ns, begin_ns + 1) });

function status({ count: all, total_ns, rows }: FindAnswer, at: number): string {
  if (all === 0) return "Nothing found";
  const of = all > rows.length ? `the first ${count(rows.length)} of ${count(all)}` : count(all);
  return `${at < 0 ? of : `${count(at + 1)} of ${of}`}, ${duration(total_ns)} in total`;
}
