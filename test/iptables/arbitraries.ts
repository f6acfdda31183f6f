import fc from 'fast-check';
import type { Family } from '../../src/model/ip.ts';
import type { ServicePlan } from '../../src/plan/service-plan.ts';
import { planOf } from '../cluster/plans.ts';

const addresses = {
  IPv4: {
    cluster: (n: number) => `10.96.0.${n}`,
    endpoint: (n: number) => `10.244.0.${n}`,
    external: ['192.0.2.7', '192.0.2.8'],
    vips: ['198.51.100.1', '198.51.100.2'],
    ranges: ['203.0.113.0/24', '192.168.10.0/24'],
  },
  IPv6: {
    cluster: (n: number) => `fd00:96::${n}`,
    endpoint: (n: number) => `fd00:244::${n}`,
    external: ['2001:db8::7', '2001:db8::8'],
    vips: ['2001:db8:1::1', '2001:db8:1::2'],
    ranges: ['2001:db8:2::/64', 'fd00:10::/64'],
  },
};

const names = ['web', 'web-a', 'api', 'db', 'dns'];
const protocols = ['TCP', 'UDP', 'SCTP'] as const;

/** One of a few service ports gets a new plan, or is removed. */
export interface PlanChange {
  readonly which: number;
  readonly to: ServicePlan | undefined;
}

/** Changes of few service ports with few endpoints, so that earlier states occur again. */
export function planChange(family: Family): fc.Arbitrary<PlanChange> {
  const { cluster, endpoint, external, vips, ranges } = addresses[family];
  const endpoints = fc.uniqueArray(
    fc.record({
      ip: fc.integer({ min: 1, max: 6 }).map(endpoint),
      local: fc.boolean(),
      state: fc.constantFrom('ready' as const, 'ready' as const, 'draining' as const, 'gone' as const),
    }),
    { selector: ({ ip }) => ip, maxLength: 5 },
  );
  const parts = fc.record({
    nodePort: fc.constantFrom(0, 30080),
    affinitySeconds: fc.constantFrom(0, 0, 60),
    externalIPs: fc.subarray(external),
    loadBalancerVIPs: fc.subarray(vips),
    sourceRanges: fc.subarray(ranges),
    externalPolicyLocal: fc.boolean(),
    internalPolicyLocal: fc.boolean(),
    healthCheckNodePort: fc.constantFrom(0, 32100),
  });
  const state = fc.option(fc.record({ parts, endpoints }), { nil: undefined, freq: 4 });
  return fc.record({ which: fc.nat(names.length - 1), state }).map(({ which, state }) => {
    if (!state) return { which, to: undefined };
    const protocol = protocols[which % protocols.length] ?? 'TCP';
    const port = { name: names[which] ?? '', portName: 'p', protocol, clusterIP: cluster(which + 1) };
    return { which, to: planOf({ ...port, ...state.parts }, state.endpoints) };
  });
}
