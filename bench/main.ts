import { parseArgs } from 'node:util';

/**
 * `npm run bench -- NAME… [--sizes 1000x3,50000x10]` runs the named benchmarks, all of them without a name. Sizes are
 * services and endpoints of each; not every benchmark has them.
 */
interface Options {
  readonly sizes?: string;
}

const benches: Record<string, () => Promise<{ run(options: Options): Promise<void> }>> = {
  nftables: () => import('./nftables.ts'),
  iptables: () => import('./iptables.ts'),
  ipvs: () => import('./ipvs.ts'),
  startup: () => import('./startup.ts'),
  state: () => import('./state.ts'),
  userspace: () => import('./userspace.ts'),
};

const { positionals: names, values } = parseArgs({
  allowPositionals: true,
  options: { sizes: { type: 'string' } },
});
const unknown = names.filter((name) => !(name in benches));
if (unknown.length > 0) {
  console.error(
    `bench: no such benchmark: ${unknown.join(', ')} (there are: ${Object.keys(benches).join(', ')})`,
  );
  process.exit(1);
}
for (const name of names.length > 0 ? names : Object.keys(benches)) {
  console.log(`\n== ${name}`);
  await (await benches[name]?.())?.run(values);
}
