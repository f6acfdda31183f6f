import { setTimeout as sleep } from 'node:timers/promises';
import type { Scenario } from './scenario.ts';

/** The API server is away for some seconds; all watches end. */
export const scenario: Scenario = {
  play: async ({ controlPlane }) => {
    await controlPlane.stopApiServer();
    await sleep(10_000);
    await controlPlane.startApiServer();
    await sleep(10_000);
  },
};
