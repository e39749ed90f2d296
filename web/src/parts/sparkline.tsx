/** A small line of figures over time. */

const WIDTH = 140;
const HEIGHT = 30;

export function Sparkline({ values, most, label }: { values: number[]; most: number; label: string }) {
  const top = Math.max(most, ...values) || 1;
  const step = WIDTH / Math.max(1, values.length - 1);
  const points = values.map((value, at) => `${(at * step).toFixed(1)},${(HEIGHT - 1 - (value / top) * (HEIGHT - 2)).toFixed(1)}`);
  return (
    <svg class="sparkline" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label={label}>
      {points.length > 1 && <polygon points={`0,${HEIGHT} ${points.join(" ")} ${WIDTH},${HEIGHT}`} />}
      {points.length > 1 && <polyline points={points.join(" ")} />}
    </svg>
  );
}
