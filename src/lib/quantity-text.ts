/** The two largest units of a time span: `3d4h`, `5m10s`, `2s`, `20ms`. */
export function spanText(ms: number): string {
  if (ms < 1000) return `${Math.max(0, Math.round(ms))}ms`;
  const seconds = Math.floor(ms / 1000);
  const units: [number, string][] = [
    [Math.floor(seconds / 86_400), 'd'],
    [Math.floor(seconds / 3600) % 24, 'h'],
    [Math.floor(seconds / 60) % 60, 'm'],
    [seconds % 60, 's'],
  ];
  const first = units.findIndex(([n]) => n > 0);
  const shown = units.slice(first, first + 2).filter(([n]) => n > 0);
  return shown.map(([n, unit]) => `${n}${unit}`).join('');
}

export function agoText(time: string, now: string): string {
  return `${spanText(Date.parse(now) - Date.parse(time))} ago`;
}

/** `33.3 %`. */
export function percentText(share: number): string {
  return `${(share * 100).toFixed(1)} %`;
}
