import { setTimeout as sleep } from 'node:timers/promises';
import type { Scenario } from './scenario.ts';

const node = 'node2';

/** A node loses its pods and gets new ones. Its proxy serves node ports all the time. */
export const scenario: Scenario = {
  play: async ({ kubectl }) => {
    await kubectl.run('drain', node, '--ignore-daemonsets', '--delete-emptydir-data', '--timeout=300s');
    await sleep(10_000);
    await kubectl.run('uncordon', node);
  },
  restore: async ({ kubectl, web }) => {
    await kubectl.run('uncordon', node);
    await web.restart();
  },
};
