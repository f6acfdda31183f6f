import type { Scenario } from './scenario.ts';

const netAdmin = 1n << 12n;

/** From the privileged DaemonSet to the overlay that leaves only CAP_NET_ADMIN, and back. */
export const scenario: Scenario = {
  obstacle: ({ mode, which }) => {
    if (which !== 'ours') return 'the overlay is for our image';
    return mode === 'nftables' ? undefined : 'the overlay is for nftables mode';
  },
  play: async ({ proxy, kubectl, web, mode }) => {
    await proxy.deploy({ which: 'ours', mode, overlay: 'overlays/nftables-least-privilege' });
    const status = await kubectl.run(
      '--namespace=kube-system',
      'exec',
      'daemonset/kube-proxy',
      '--container=kube-proxy',
      '--',
      'cat',
      '/proc/1/status',
    );
    const effective = BigInt(`0x${/^CapEff:\s*(\w+)/m.exec(status)?.[1] ?? '0'}`);
    if (effective !== netAdmin) throw new Error(`the proxy has capabilities ${effective.toString(16)}`);
    await web.assertChangesArrive();
    await proxy.deploy({ which: 'ours', mode });
  },
};
