// A name that loses its middle where it does not fit: names that begin alike mostly differ near their end.

const TAIL = 14; // characters that always stay

export function MiddleCut({ text }: { text: string }) {
  if (text.length <= TAIL) return <bdi>{text}</bdi>;
  return (
    <bdi class="middle-cut">
      <span>{text.slice(0, -TAIL)}</span>
      <span>{text.slice(-TAIL)}</span>
    </bdi>
  );
}
