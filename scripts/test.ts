/**
 * Runs the tests. `npm run test:unit` (--unit) runs those that need neither root nor a network. `npm run test:quick`
 * (--quick) runs the checks, the unit tests, and the contract in brief in three modes. `npm test` runs the checks, then
 * all tests, and at the same time those in the emulated machine (scripts/test-vm.ts); it installs missing Debian
 * packages. Further arguments select test files: `npm test -- test/contract`.
 */
import { installMissing } from './debian-packages.ts';
import { shareSeed } from './seed.ts';
import {
  build,
  root,
  runChecks,
  runInMachine,
  runTests,
  systemTests,
  tools,
  unitTests,
} from './test-files.ts';

/** One file per mode; both flavours of iptables would say the same about this program. */
const quickContract = ['nftables', 'iptables-nft', 'userspace'].map(
  (mode) => `test/contract/${mode}.test.ts`,
);

async function main(args: readonly string[]): Promise<boolean> {
  const wanted = args.filter((arg) => !arg.startsWith('--'));
  const select = (files: readonly string[]): readonly string[] =>
    wanted.length === 0 ? files : files.filter((file) => wanted.some((part) => file.startsWith(part)));
  shareSeed(root);
  if (args.includes('--unit')) return runTests(select(unitTests()));
  installMissing(tools);
  if (wanted.length === 0 && !(await runChecks())) return false;
  if (!(await build())) return false;
  if (args.includes('--quick')) {
    process.env.KPT_CONTRACT = 'brief';
    return runTests([...select(unitTests()), ...select(quickContract)]);
  }
  const here = runTests([...select(unitTests()), ...select(systemTests())]);
  const inMachine = wanted.length > 0 || runInMachine(['ipvs', 'nftables'], 'emulated machine: ');
  const passed = await Promise.all([here, inMachine]);
  return passed.every(Boolean);
}

process.exitCode = (await main(process.argv.slice(2))) ? 0 : 1;
