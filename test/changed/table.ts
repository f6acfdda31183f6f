/** Beginnings of paths: of changed files, and of the test files that these may break without being imported by them. */
export type Row = readonly [changed: string, tests: readonly string[] | 'everything'];

const modes = {
  nftables: [
    'test/nftables/',
    'test/contract/nftables',
    'test/contract/migration',
    'test/explain/nftables',
    'test/traffic/nftables',
    'test/soak/nftables',
    'test/program/',
    'test/ctl/',
  ],
  iptables: [
    'test/iptables/',
    'test/contract/iptables',
    'test/contract/migration',
    'test/explain/iptables',
    'test/traffic/iptables',
    'test/soak/iptables',
    'test/ctl/',
  ],
  ipvs: [
    'test/ipvs/',
    'test/contract/ipvs',
    'test/explain/ipvs',
    'test/traffic/ipvs',
    'test/soak/ipvs',
    'test/ctl/',
  ],
  userspace: [
    'test/userspace/',
    'test/contract/userspace',
    'test/explain/userspace',
    'test/traffic/userspace',
    'test/soak/userspace',
    'test/ctl/',
    'test/program/start',
  ],
};
const allModes = [...new Set(Object.values(modes).flat())];
/** Tests that start the program as an operator does, in any mode. */
const program = ['test/program/', 'test/ctl/', 'test/userspace/program', 'test/deploy/'];
const iptablesAndIpvs = [...modes.iptables, ...modes.ipvs];

/**
 * System tests start the program and import little of it, so the import graph does not find them: this table does. The
 * row with the longest fitting path counts.
 */
export const table: readonly Row[] = [
  ...Object.entries(modes).map(([mode, tests]): Row => [`src/backends/${mode}/`, tests]),
  ['src/backends/', allModes],
  ['src/plan/', allModes],
  ['src/state/', [...allModes, 'test/kube/']],
  ['src/proxier/', [...allModes, 'test/kube/']],
  ['src/model/', [...allModes, 'test/kube/', 'test/kernel/']],
  ['src/lib/', [...allModes, ...program, 'test/kube/', 'test/kernel/']],
  ['src/conntrack/', [...allModes, 'test/kernel/']],
  ['src/forwarder/', modes.userspace],
  ['src/native/', [...allModes, 'test/kernel/']],
  ['src/kernel/', [...allModes, ...program, 'test/kernel/']],
  [
    'src/kernel/nft/',
    [...modes.nftables, ...modes.userspace, ...modes.iptables, 'test/kernel/', 'test/trace/'],
  ],
  ['src/kernel/iptables/', iptablesAndIpvs],
  ['src/kernel/xtables/', iptablesAndIpvs],
  ['src/kernel/ipvs/', modes.ipvs],
  ['src/kernel/ipset/', [...modes.ipvs, 'test/kernel/ipset']],
  ['src/kernel/acct/', [...modes.iptables, ...modes.nftables, 'test/kernel/acct']],
  ['src/kube/', ['test/kube/', ...program]],
  ['src/sources/', ['test/kube/', ...program]],
  ['src/inspect/', ['test/explain/', 'test/ctl/', 'test/page/', 'test/traffic/', ...inspections()]],
  ['src/traffic/', ['test/traffic/', 'test/page/']],
  ['src/kernel/nflog/', ['test/traffic/']],
  ['src/ctl/', ['test/ctl/', 'test/page/', 'test/trace/']],
  ['src/trace/', ['test/trace/', 'test/ctl/live']],
  ['src/ui/', ['test/page/', 'test/package/']],
  ['src/cli/', program],
  ['src/config/', [...program, 'test/contract/nftables.test.ts']],
  ['src/admin/', [...program, 'test/explain/']],
  ['src/health/', [...program, 'test/contract/nftables.test.ts']],
  ['src/http/', [...program, 'test/contract/nftables.test.ts']],
  ['src/obs/', program],
  ['src/app/', [...program, ...allModes]],
  ['src/main.ts', program],

  ['test/vectors/', []],
  ['test/seed.ts', 'everything'],
  ['test/vm/', ['test/vm/']],
  ['test/real-cluster/', ['test/real-cluster/']],
  ['bench/', []],
  ['examples/', ['test/ctl/', 'test/program/', 'test/package/']],
  ['deploy/', ['test/deploy/', 'test/package/', 'test/docs/']],
  ['docs/', ['test/docs/']],
  ['Dockerfile', ['test/package/', 'test/docs/']],
  ['.dockerignore', ['test/package/']],
  ['README.md', ['test/docs/', 'test/package/']],
  ['CHANGELOG.md', ['test/docs/']],
  ['CONTRIBUTING.md', ['test/docs/']],
  ['LICENSE', ['test/package/']],
  ['biome.json', []],
  ['.gitignore', []],

  ['bin/', 'everything'],
  ['scripts/', 'everything'],
  ['scripts/docs', ['test/docs/']],
  ['scripts/image/', ['test/package/', 'test/deploy/']],
  ['scripts/demo/', ['test/program/start', 'test/package/']],
  ['package.json', 'everything'],
  ['package-lock.json', 'everything'],
  ['tsconfig.json', 'everything'],
];

function inspections(): string[] {
  return Object.keys(modes).map((mode) => `test/${mode}/inspection`);
}
