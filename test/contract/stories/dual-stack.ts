import { IGNORE, type ServiceSpec, type Story, scripted, withoutServiceNetwork } from '../story.ts';

const web: ServiceSpec = { nodePort: true, external: true, loadBalancer: true, endpoints: ['A', 'B'] };
/** Modes without a service network leave unused addresses alone. */
const unclaimed = withoutServiceNetwork(IGNORE);
const dualStackOnly = { dualStackOnly: true };

/** Services in clusters with both families. */
export const dualStackStories: readonly Story[] = [
  scripted(
    'dual/one family of endpoints',
    'a family without endpoints is rejected, the other is served',
    async (scene) => {
      await scene.apply(web);
      scene.cluster.removeSlices(scene.service(), [scene.otherFamily.book.family]);
      await scene.cluster.settled();
      await scene.expect(
        { from: 'pod', to: 'clusterIP', expect: { A: 'OWN', B: 'OWN' } },
        { from: 'client', to: 'nodePort', expect: { A: 'MASQ', B: 'MASQ' } },
      );
      await scene.otherFamily.expect(
        { from: 'pod', to: 'clusterIP', expect: 'REJECT' },
        { from: 'client', to: 'nodePort', expect: 'REJECT' },
        { from: 'client', to: 'loadBalancer', expect: 'REJECT' },
      );
    },
    dualStackOnly,
  ),
  scripted(
    'dual/single-stack service',
    'a service of one family has no address in the other',
    async (scene) => {
      await scene.apply({ ...web, families: [scene.book.family] });
      await scene.expect(
        { from: 'pod', to: 'clusterIP', expect: { A: 'OWN', B: 'OWN' } },
        { from: 'client', to: 'nodePort', expect: { A: 'MASQ', B: 'MASQ' } },
      );
      await scene.otherFamily.expect(
        { from: 'pod', to: 'clusterIP', expect: 'DROP', ...unclaimed },
        { from: 'client', to: 'nodePort', expect: 'RESET' },
      );
    },
    dualStackOnly,
  ),
  scripted(
    'dual/family added',
    'a service gets its second family and loses it',
    async (scene) => {
      const own = { from: 'pod', to: 'clusterIP' } as const;
      const single: ServiceSpec = { ...web, families: [scene.book.family] };
      await scene.apply(single);
      await scene.apply(web);
      await scene.otherFamily.expect({ ...own, expect: { A: 'OWN', B: 'OWN' } });
      await scene.apply(single);
      await scene.expect({ ...own, expect: { A: 'OWN', B: 'OWN' } });
      await scene.otherFamily.expect({ ...own, expect: 'DROP', ...unclaimed });
    },
    dualStackOnly,
  ),
  scripted(
    'dual/affinity',
    'affinity records of one family do not count in the other',
    async (scene) => {
      await scene.apply({ ...web, affinitySeconds: 600, endpoints: ['A'] });
      await scene.expect({ from: 'pod', to: 'clusterIP', expect: { A: 'OWN' } });
      await scene.apply({ ...web, affinitySeconds: 600, endpoints: ['A', 'B'] });
      await scene.expect({ from: 'pod', to: 'clusterIP', expect: { A: 'OWN' } });
      const first = await scene.otherFamily.answerer({ from: 'pod', to: 'clusterIP' });
      await scene.otherFamily.expect({ from: 'pod', to: 'clusterIP', expect: { [first]: 'OWN' } });
    },
    dualStackOnly,
  ),
];
