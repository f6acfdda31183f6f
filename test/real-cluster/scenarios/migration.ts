import { setTimeout as sleep } from 'node:timers/promises';
import type { Scenario } from './scenario.ts';

/** From upstream's proxy to ours and back, by the image of the DaemonSet, as docs/migration.md describes. */
export const scenario: Scenario = {
  obstacle: ({ mode }) => (mode === 'userspace' ? 'upstream has no userspace mode' : undefined),
  prepare: ({ proxy, mode }) => proxy.deploy({ which: 'upstream', mode }),
  play: async ({ proxy, web, mode }) => {
    await proxy.setImage('ours');
    await proxy.assertMode(mode);
    await web.assertChangesArrive();
    await sleep(5_000);
    await proxy.setImage('upstream');
    await proxy.assertMode(mode);
  },
  restore: ({ proxy, which, mode }) => proxy.deploy({ which, mode }),
};
