// The peaks of two recordings next to each other.
import { memoryColourOf } from "../colours";
import type { Memory } from "../report";
import { bytes, signedShare } from "../text/format";
import { partChanges, placeChanges, type MemoryChange } from "./memory_changes";

interface Props {
  readonly a: Memory;
  readonly b: Memory;
  readonly names?: readonly [string, string];
}

export function MemoryDifference({ a, b, names = ["A", "B"] }: Props) {
  const places = placeChanges(a, b);
  const whole = { key: "", title: "At the peak", a: a.peak_bytes, b: b.peak_bytes };
  return (
    <>
      <ChangeTable caption="Memory at the peak" rows={[whole, ...partChanges(a, b)]} names={names} first="Category" coloured />
      {places.length > 0 && <ChangeTable caption="Places with the largest change" rows={places} names={names} first="Place" />}
    </>
  );
}

interface TableProps {
  readonly caption: string;
  readonly rows: readonly MemoryChange[];
  readonly names: readonly [string, string];
  readonly first: string;
  readonly coloured?: boolean;
}

function ChangeTable({ caption, rows, names, first, coloured }: TableProps) {
  return (
    <section class="memory-difference">
      <h2>{caption}</h2>
      <table aria-label={caption}>
        <thead>
          <tr>
            <th scope="col">{first}</th>
            <th scope="col" class="figure">{names[0]}</th>
            <th scope="col" class="figure">{names[1]}</th>
            <th scope="col" class="figure">Change</th>
          </tr>
        </thead>
        <tbody>
          {rows.map(({ key, title, a, b }) => (
            <tr key={key} class={key ? undefined : "whole"}>
              <th scope="row">
                {coloured && key && <span class="swatch" style={{ backgroundColor: memoryColourOf(key) }} />}
                {title}
              </th>
              <td class="figure">{bytes(a)}</td>
              <td class="figure">{bytes(b)}</td>
              <td class="figure">{changeText(a, b)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

function changeText(a: number, b: number): string {
  if (a === b) return "0";
  const sign = b > a ? "+" : "−";
  return `${sign}${bytes(Math.abs(b - a))}${a > 0 ? ` (${signedShare(b / a - 1)})` : ""}`;
}
