// The memory in one line. Details are in a view of their own.
import type { Memory } from "../../shared/report";
import { bytes, share } from "../../shared/text/format";

interface Props {
  readonly memory: Memory;
  /** Opens the memory view. Undefined where there are no views. */
  readonly open: (() => void) | undefined;
}

export function MemoryCard({ memory, open }: Props) {
  const { peak_bytes: peak, capacity_bytes: capacity, headroom_bytes: headroom } = memory;
  const largest = [...memory.parts].sort((a, b) => b.bytes - a.bytes)[0];
  return (
    <section class="memory-card">
      <h2>Memory</h2>
      {largest && (
        <p>
          {bytes(peak)} at the peak{capacity !== undefined && <> of {bytes(capacity)}, {bytes(headroom ?? 0)} free</>}; {share(largest.share)} of it: {largest.title.toLowerCase()}.
        </p>
      )}
      {open && (
        <button type="button" class="link" onClick={open}>
          What fills the memory?
        </button>
      )}
    </section>
  );
}
