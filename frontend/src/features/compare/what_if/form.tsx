// The form for the conditions of a prediction. Empty fields stay as recorded.
import type { ComponentChildren } from "preact";
import { useEffect, useId, useState } from "preact/hooks";
import type { Client } from "../../../shared/server/api";
import { AS_RECORDED, conditionsText, FIELDS, type Conditions, type Field } from "./conditions";

const PRECISIONS = ["bf16", "fp16", "tf32"];
const LINKS = ["gen3x8", "gen3x16", "gen4x8", "gen4x16", "gen5x8", "gen5x16", "gen6x16"];
const MAX_COUNT = 1_000_000_000;

interface Props {
  readonly client: Client;
  readonly device: string; // of the recording, if it is known
  readonly conditions: Conditions; // of the current prediction
  readonly predict: (conditions: Conditions) => void;
}

export function Form({ client, device, conditions, predict }: Props) {
  const [draft, setDraft] = useState(conditions);
  const text = conditionsText(conditions);
  useEffect(() => setDraft(conditions), [text]); // the address may have changed
  const devices = useDevices(client);
  const list = useId();
  const set = (field: Field) => (event: { readonly currentTarget: { readonly value: string } }) => setDraft({ ...draft, [field]: event.currentTarget.value });
  return (
    <form
      class="conditions"
      onSubmit={(event) => {
        event.preventDefault();
        predict(draft);
      }}
    >
      <fieldset>
        <legend class="visually-hidden">What if this run had…</legend>
        <LabelledField name="Device">
          <input type="text" list={list} autocomplete="off" spellcheck={false} placeholder={device || "as recorded"} value={draft.device} onInput={set("device")} />
          <datalist id={list}>
            {devices.map((name) => (
              <option key={name} value={name} />
            ))}
          </datalist>
        </LabelledField>
        <LabelledField name="Loader workers">
          <input type="number" inputMode="numeric" min={0} max={MAX_COUNT} step={1} placeholder="as recorded" value={draft.workers} onInput={set("workers")} />
        </LabelledField>
        <LabelledField name="Samples per step">
          <input type="number" inputMode="numeric" min={1} max={MAX_COUNT} step={1} placeholder="as recorded" value={draft.batch} onInput={set("batch")} />
        </LabelledField>
        <LabelledField name="Precision">
          <Choice values={PRECISIONS} value={draft.precision} onChange={set("precision")} textOf={(value) => value} />
        </LabelledField>
        <LabelledField name="Link to the host">
          <Choice values={LINKS} value={draft.link} onChange={set("link")} textOf={linkText} />
        </LabelledField>
        <div class="actions">
          <button type="submit" class="first" disabled={conditionsText(draft) === ""}>
            Predict
          </button>
          <button type="button" disabled={FIELDS.every((field) => draft[field] === "" && conditions[field] === "")} onClick={() => (setDraft(AS_RECORDED), predict(AS_RECORDED))}>
            Clear
          </button>
        </div>
      </fieldset>
    </form>
  );
}

function LabelledField({ name, children }: { name: string; children: ComponentChildren }) {
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
  readonly onChange: (event: { readonly currentTarget: { readonly value: string } }) => void;
  readonly textOf: (value: string) => string;
}

/** A value from the address is always offered. If it is invalid, the response says why. */
function Choice({ values, value, onChange, textOf }: ChoiceProps) {
  const offered = value === "" || values.includes(value) ? values : [...values, value];
  return (
    <select value={value} onChange={onChange}>
      <option value="">as recorded</option>
      {offered.map((option) => (
        <option key={option} value={option}>
          {textOf(option)}
        </option>
      ))}
    </select>
  );
}

/** "PCIe 4.0 × 16" of gen4x16. */
function linkText(link: string): string {
  const [, generation, lanes] = /^gen(\d)x(\d+)$/.exec(link) ?? [];
  return generation === undefined ? link : `PCIe ${generation}.0 × ${lanes}`;
}

/** The devices that the server knows. Without them a name can still be typed. */
function useDevices(client: Client): readonly string[] {
  const [names, setNames] = useState<readonly string[]>([]);
  useEffect(() => {
    const controller = new AbortController();
    void client.devices(controller.signal).then((result) => {
      if (result.kind === "ok") setNames(result.value.names);
    });
    return () => controller.abort();
  }, [client]);
  return names;
}
