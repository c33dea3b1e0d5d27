// What is supposed to be otherwise: a device by its name, counts, a type, a link. What stays empty stays as it is.
import type { ComponentChildren } from "preact";
import { useEffect, useId, useState } from "preact/hooks";
import type { Client } from "../../shared/server/api";
import { AS_IT_IS, FIELDS, supposedText, type Field, type Supposed } from "./conditions";

const PRECISIONS = ["bf16", "fp16", "tf32"];
const LINKS = ["gen3x8", "gen3x16", "gen4x8", "gen4x16", "gen5x8", "gen5x16", "gen6x16"];
const MOST = 1_000_000_000;

interface Props {
  readonly client: Client;
  readonly device: string; // that the recording was made on, as far as that is known
  readonly asked: Supposed;
  readonly ask: (supposed: Supposed) => void;
}

export function Form({ client, device, asked, ask }: Props) {
  const [draft, setDraft] = useState(asked);
  const text = supposedText(asked);
  useEffect(() => setDraft(asked), [text]); // the address may say something else now
  const devices = useDevices(client);
  const list = useId();
  const put = (field: Field) => (event: { readonly currentTarget: { readonly value: string } }) => setDraft({ ...draft, [field]: event.currentTarget.value });
  return (
    <form
      class="supposing"
      onSubmit={(event) => {
        event.preventDefault();
        ask(draft);
      }}
    >
      <fieldset>
        <legend class="spoken">What if this run had…</legend>
        <Labelled name="Device">
          <input type="text" list={list} autocomplete="off" spellcheck={false} placeholder={device || "as recorded"} value={draft.device} onInput={put("device")} />
          <datalist id={list}>
            {devices.map((name) => (
              <option key={name} value={name} />
            ))}
          </datalist>
        </Labelled>
        <Labelled name="Loader workers">
          <input type="number" inputMode="numeric" min={1} max={MOST} step={1} placeholder="as recorded" value={draft.workers} onInput={put("workers")} />
        </Labelled>
        <Labelled name="Samples per step">
          <input type="number" inputMode="numeric" min={1} max={MOST} step={1} placeholder="as recorded" value={draft.batch} onInput={put("batch")} />
        </Labelled>
        <Labelled name="Precision">
          <Choice values={PRECISIONS} value={draft.precision} put={put("precision")} say={(value) => value} />
        </Labelled>
        <Labelled name="Link to the host">
          <Choice values={LINKS} value={draft.link} put={put("link")} say={linkInWords} />
        </Labelled>
        <div class="doings">
          <button type="submit" class="first" disabled={supposedText(draft) === ""}>
            Predict
          </button>
          <button type="button" disabled={FIELDS.every((field) => draft[field] === "" && asked[field] === "")} onClick={() => (setDraft(AS_IT_IS), ask(AS_IT_IS))}>
            Clear
          </button>
        </div>
      </fieldset>
    </form>
  );
}

function Labelled({ name, children }: { name: string; children: ComponentChildren }) {
  return (
    <label>
      <span>{name}</span>
      {children}
    </label>
  );
}

interface ChoiceProps {
  readonly values: readonly string[];
  readonly value: string;
  readonly put: (event: { readonly currentTarget: { readonly value: string } }) => void;
  readonly say: (value: string) => string;
}

/** What the address names is among them, whatever it is: the answer says what is wrong with it. */
function Choice({ values, value, put, say }: ChoiceProps) {
  const offered = value === "" || values.includes(value) ? values : [...values, value];
  return (
    <select value={value} onChange={put}>
      <option value="">as recorded</option>
      {offered.map((one) => (
        <option key={one} value={one}>
          {say(one)}
        </option>
      ))}
    </select>
  );
}

/** "PCIe 4.0 × 16" of gen4x16. */
function linkInWords(spelt: string): string {
  const [, generation, lanes] = /^gen(\d)x(\d+)$/.exec(spelt) ?? [];
  return generation === undefined ? spelt : `PCIe ${generation}.0 × ${lanes}`;
}

/** The devices that the server knows; until they are there, and where they do not come, a name can be typed all the same. */
function useDevices(client: Client): readonly string[] {
  const [names, setNames] = useState<readonly string[]>([]);
  useEffect(() => {
    const leaving = new AbortController();
    void client.devices(leaving.signal).then((answer) => {
      if (answer.kind === "ok") setNames(answer.value.names);
    });
    return () => leaving.abort();
  }, [client]);
  return names;
}
