// Values in their order as a small line chart that starts at zero. It shows whether they vary; the figures are beside it.

const WIDTH = 40;
const HEIGHT = 16;
const FEWEST = 3; // two values are a line that says nothing

export function Sparkline({ values }: { values: readonly number[] }) {
  if (values.length < FEWEST) return null;
  const largest = Math.max(...values);
  const points = values.map((value, index) => `${(index / (values.length - 1)) * WIDTH} ${HEIGHT - 1 - (value / largest) * (HEIGHT - 2)}`);
  return (
    <svg class="spark" width={WIDTH} height={HEIGHT} viewBox={`0 0 ${WIDTH} ${HEIGHT}`} aria-hidden="true">
      <path d={`M${points.join("L")}`} />
    </svg>
  );
}
