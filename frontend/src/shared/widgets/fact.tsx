// A figure with its name above and a note below.

interface Props {
  readonly name: string;
  readonly value: string;
  readonly note?: string;
}

export function Fact({ name, value, note }: Props) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>
        <span title={value}>{value}</span>
        {note && <small>{note}</small>}
      </dd>
    </div>
  );
}
