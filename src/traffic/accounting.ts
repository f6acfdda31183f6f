import type { Sysctl } from '../kernel/sysctl.ts';

const COUNTERS = 'net/netfilter/nf_conntrack_acct';
const EVENTS = 'net/netfilter/nf_conntrack_events';
const TIMES = 'net/netfilter/nf_conntrack_timestamp';

export interface Accounting {
  /** Whether the kernel counts packets and bytes of new flows. */
  readonly isOn: boolean;
  /** Whether the kernel reports new and ended flows. */
  readonly hasEvents: boolean;
  /** Sets back what was changed. */
  restore(): void;
}

/** Makes the kernel count packets and bytes of new flows, and remember when they began, if it lets us. */
export function switchOnAccounting(sysctl: Sysctl): Accounting {
  const changed = [COUNTERS, TIMES].filter((name) => isChanged(sysctl, name));
  return {
    isOn: sysctl.read(COUNTERS) === 1,
    hasEvents: sysctl.read(EVENTS) !== 0,
    restore() {
      for (const name of changed) {
        try {
          sysctl.write(name, 0);
        } catch {
          // It was writable before. Nothing depends on it.
        }
      }
    },
  };
}

function isChanged(sysctl: Sysctl, name: string): boolean {
  if (sysctl.read(name) !== 0) return false;
  try {
    sysctl.write(name, 1);
    return true;
  } catch {
    // A container may have /proc/sys read-only: then there are no bytes, or no ages.
    return false;
  }
}
