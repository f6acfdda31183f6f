import type { Scenario } from './scenario.ts';

/** New pods for the proxy on every node, then new pods for the web service. */
export const scenario: Scenario = {
  play: async ({ proxy, web }) => {
    await proxy.restart();
    await web.restart();
  },
};
