/**
 * Runs the tests. `npm run test:unit` (--unit): tests that need neither root nor the network. `npm run test:quick`
 * (--quick): types, lint, unit tests, and the brief contract in the modes that this machine's kernel has. `npm test`:
 * types, lint, unit tests, then the system tests, then those on another kernel (scripts/test-vm.ts); it installs
 * missing Debian packages. Further arguments select test files: `npm test -- test/contract`.
 */
import { installMissing } from './debian-packages.ts';
import { shareSeed } from './seed.ts';
import {
  root,
  run,
  runChecks,
  runSystemTests,
  runUnitTests,
  systemTests,
  tools,
  unitTests,
} from './test-files.ts';

/** One file per mode; a second flavour of iptables would show nothing new about this program. */
const quickContract = ['nftables', 'iptables-nft', 'userspace'].map(
  (mode) => `test/contract/${mode}.test.ts`,
);

function main(args: readonly string[]): void {
  const wanted = args.filter((arg) => !arg.startsWith('--'));
  const select = (files: readonly string[]): readonly string[] =>
    wanted.length === 0 ? files : files.filter((file) => wanted.some((part) => file.startsWith(part)));
  const isUnitOnly = args.includes('--unit');
  const isQuick = args.includes('--quick');
  shareSeed(root);
  if (isQuick) process.env.KPT_CONTRACT = 'brief';
  if (wanted.length === 0 && !isUnitOnly) runChecks();
  if (!isUnitOnly) installMissing(tools);
  runUnitTests(select(unitTests()));
  if (isUnitOnly) return;
  runSystemTests(select(isQuick ? quickContract : systemTests()));
  if (isQuick || wanted.length > 0) return;
  for (const script of ['test:vm', 'test:vm:nftables']) run('npm', ['run', '--silent', script]);
}

main(process.argv.slice(2));
