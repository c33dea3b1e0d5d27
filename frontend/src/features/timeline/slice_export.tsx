// Exports the visible range: to Perfetto or to a file.
import { useState } from "preact/hooks";
import { save } from "../../shared/page/download";
import type { RunEntry } from "../../shared/report";
import type { Span } from "../../shared/run/viewport";
import type { Client } from "../../shared/server/api";
import { poll } from "../../shared/server/polling";
import { fileStem } from "../../shared/text/names";
import { openViewer, sendTrace } from "./perfetto";

interface Props {
  readonly client: Client;
  readonly entry: RunEntry;
  readonly span: Span;
}

export function SliceExport({ client, entry, span }: Props) {
  const [message, setMessage] = useState("");
  const name = `${fileStem(entry.source)}.slice`;
  const { signal } = new AbortController(); // never aborted
  const requestSlice = () => poll(() => client.slice(entry.id, span.begin, span.end, signal), signal);

  const download = async () => {
    setMessage("Creating the slice…");
    const result = await requestSlice();
    if (result.kind !== "ok") return setMessage(result.kind === "failed" ? result.message : "");
    save(`${name}.json`, new Blob([result.value], { type: "application/json" }));
    return setMessage("");
  };
  const open = async () => {
    const viewer = openViewer(); // within the click handler: browsers block it later
    if (!viewer) return setMessage("The browser did not allow a new window. Allow pop-ups for this page, or download the slice.");
    setMessage("Sending the slice to Perfetto…");
    const result = await requestSlice();
    if (result.kind !== "ok") {
      viewer.close();
      return setMessage(result.kind === "failed" ? result.message : "");
    }
    const sent = await sendTrace(viewer, result.value, name);
    return setMessage(
      sent ? "" : "Perfetto did not respond. It is a page on the internet: without a connection, download the slice instead.",
    );
  };
  return (
    <>
      <button type="button" title="Opens ui.perfetto.dev in a new window and passes it the visible range; nothing is uploaded" onClick={open}>
        Open in Perfetto
      </button>
      <button type="button" title="The visible range as a trace file" onClick={download}>
        Download slice
      </button>
      <span class="message" role="status">
        {message}
      </span>
    </>
  );
}
