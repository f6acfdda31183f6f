import { setTimeout as sleep } from 'node:timers/promises';
import type { Scenario } from './scenario.ts';

/** The kubelet of one node is away for some seconds. */
export const scenario: Scenario = {
  play: async ({ machines, kubectl }) => {
    const [machine] = machines;
    if (!machine) return;
    await machine.stopKubelet();
    await sleep(10_000);
    machine.startKubelet();
    await sleep(10_000);
    await kubectl.run('wait', '--for=condition=Ready', `node/${machine.name}`, '--timeout=120s');
  },
};
