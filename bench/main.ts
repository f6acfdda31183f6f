/** `npm run bench -- NAME…` runs the named benchmarks, all of them without a name. */
const benches: Record<string, () => Promise<{ run(): Promise<void> }>> = {
  nftables: () => import('./nftables.ts'),
  scale: () => import('./scale.ts'),
  startup: () => import('./startup.ts'),
  state: () => import('./state.ts'),
};

const names = process.argv.slice(2);
const unknown = names.filter((name) => !(name in benches));
if (unknown.length > 0) {
  console.error(
    `bench: no such benchmark: ${unknown.join(', ')} (there are: ${Object.keys(benches).join(', ')})`,
  );
  process.exit(1);
}
for (const name of names.length > 0 ? names : Object.keys(benches)) {
  console.log(`\n== ${name}`);
  await (await benches[name]?.())?.run();
}
