// A name that loses its middle where it does not fit: names that begin alike mostly differ near their end.

const TAIL = 14; // characters that always stay
const FITS = 24; // characters that the list has room for

export function MiddleCut({ text }: { text: string }) {
  if (text.length <= FITS) return <bdi>{text}</bdi>;
  return (
    <bdi class="middle-cut">
      <span>{text.slice(0, -TAIL)}</span>
      <span>{text.slice(-TAIL)}</span>
    </bdi>
  );
}
