/** A line of the last values; a picture of numbers that stand beside it. */
export function Sparkline({
  values,
  width = 72,
  height = 18,
}: {
  values: readonly number[];
  width?: number;
  height?: number;
}) {
  const most = Math.max(...values, 1e-9);
  const step = width / Math.max(1, 59);
  const first = width - step * Math.max(0, values.length - 1);
  const points = values.map((value, i) => {
    const [x, y] = [first + i * step, height - 1 - (value / most) * (height - 2)];
    return `${x.toFixed(1)},${y.toFixed(1)}`;
  });
  return (
    <svg class="spark" width={width} height={height} viewBox={`0 0 ${width} ${height}`} aria-hidden="true">
      {points.length > 1 && <polyline points={points.join(' ')} />}
    </svg>
  );
}
