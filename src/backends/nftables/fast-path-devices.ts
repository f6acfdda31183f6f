import type { Link } from '../../kernel/route/link.ts';
import type { LeftOutDevice } from '../backend.ts';

/** The devices of the fast path, sorted, and those that do not take part. */
export interface DeviceChoice {
  readonly devices: readonly string[];
  readonly leftOut: readonly LeftOutDevice[];
}

/**
 * Chooses the devices on which forwarded packets can arrive. The kernel looks up connections by the device that IP sees: of
 * a bridge or bond, that is the whole and not its parts.
 */
export function chooseDevices(links: readonly Link[]): DeviceChoice {
  const names = new Map(links.map(({ index, name }) => [index, name]));
  const devices: string[] = [];
  const leftOut: LeftOutDevice[] = [];
  for (const link of links.toSorted((a, b) => (a.name < b.name ? -1 : 1))) {
    const reason = obstacle(link, names);
    if (reason === undefined) devices.push(link.name);
    else leftOut.push({ device: link.name, reason });
  }
  return { devices, leftOut };
}

/** Why a device does not take part; undefined when it does. */
function obstacle(
  { isLoopback, isUp, kind, master }: Link,
  names: ReadonlyMap<number, string>,
): string | undefined {
  if (isLoopback) return 'loopback';
  if (kind === 'dummy') return 'dummy';
  if (master !== undefined) return `part of ${names.get(master) ?? `interface ${master}`}`;
  return isUp ? undefined : 'down';
}
