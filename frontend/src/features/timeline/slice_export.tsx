// Takes the stretch that is seen to another viewer, or onto the disk.
import { useState } from "preact/hooks";
import type { Client } from "../../shared/server/api";
import { save } from "../../shared/page/download";
import { settled } from "../../shared/server/polling";
import { fileStem } from "../../shared/text/names";
import { handOver, openViewer } from "./perfetto";
import type { RunEntry } from "../../shared/report";
import type { Span } from "../../shared/run/viewport";

interface Props {
  readonly client: Client;
  readonly entry: RunEntry;
  readonly span: Span;
}

export function TakeAway({ client, entry, span }: Props) {
  const [said, say] = useState("");
  const name = `${fileStem(entry.source)}.slice`;
  const never = new AbortController().signal;
  const cut = () => settled(() => client.slice(entry.id, span.begin, span.end, never), never);

  const download = async () => {
    say("Cutting…");
    const answer = await cut();
    if (answer.kind !== "ok") return say(answer.kind === "failed" ? answer.message : "");
    save(`${name}.json`, new Blob([answer.value], { type: "application/json" }));
    return say("");
  };
  const open = async () => {
    const viewer = openViewer(); // inside the click: later the browser would not allow it
    if (!viewer) return say("The browser did not allow a new window. Allow pop-ups for this page, or download the slice.");
    say("Handing over to Perfetto…");
    const answer = await cut();
    if (answer.kind !== "ok") {
      viewer.close();
      return say(answer.kind === "failed" ? answer.message : "");
    }
    const taken = await handOver(viewer, answer.value, name);
    return say(
      taken ? "" : "Perfetto did not answer. It is a page on the internet: without a connection, download the slice instead.",
    );
  };
  return (
    <>
      <button type="button" title="Opens ui.perfetto.dev in a new window and hands it what is seen here; nothing is uploaded" onClick={open}>
        Open in Perfetto
      </button>
      <button type="button" title="What is seen here, as a trace file" onClick={download}>
        Download slice
      </button>
      <span class="said" role="status">
        {said}
      </span>
    </>
  );
}
