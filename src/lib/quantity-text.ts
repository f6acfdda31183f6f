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

/** A number in at most five characters: `0.4`, `97`, `1.2k`, `345M`; a dash for one that is not known. */
export function amountText(n: number | null): string {
  if (n === null) return '-';
  if (n < 10 && !Number.isInteger(n)) return n.toFixed(1);
  let value = n;
  for (const unit of ['', 'k', 'M', 'G', 'T']) {
    // 999.6 would round to four digits.
    if (Math.round(value) < 1000 || unit === 'T') {
      return unit === '' || value >= 9.95 ? `${Math.round(value)}${unit}` : `${value.toFixed(1)}${unit}`;
    }
    value /= 1000;
  }
  return String(n);
}
