// A list of sentences under a heading. Nothing if there are none.

export function Notes({ lines, title }: { lines: readonly string[]; title: string }) {
  if (lines.length === 0) return null;
  return (
    <section class="notes">
      <h2>{title}</h2>
      <ul>
        {lines.map((line, index) => (
          <li key={index}>{line}</li>
        ))}
      </ul>
    </section>
  );
}
