/**
 * `npm run test:vm`: the kernel tests of nftables mode once more, in an emulated machine with Debian's stock kernel
 * (6.1), which is older than that of most test machines. Needs root; installs the Debian packages that are missing.
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { installMissing } from './debian-packages.ts';

const root = resolve(import.meta.dirname, '..');
const seconds = 900;
const tools = {
  'qemu-system-x86_64': 'qemu-system-x86',
  busybox: 'busybox-static',
  depmod: 'kmod',
  cpio: 'cpio',
  ip: 'iproute2',
  nft: 'nftables',
};
const modules = [
  'veth',
  'nf_tables',
  'nft_chain_nat',
  'nft_masq',
  'nft_numgen',
  'nft_fib_ipv4',
  'nft_fib_ipv6',
  'nft_reject_ipv4',
  'nft_reject_ipv6',
  'nft_ct',
  'nf_conntrack_netlink',
];

installMissing(tools);
const out = mkdtempSync(join(tmpdir(), 'kpt-vm-'));
const tests = 'node_modules/.bin/node --test --test-concurrency=1 test/nftables/*.test.ts';
const command = [
  '-m',
  modules.join(' '),
  '-t',
  String(seconds),
  '--',
  'bash',
  '-c',
  `cd '${root}' && ${tests}`,
];
const { status, error } = spawnSync(join(root, 'test/vm/vm-run'), command, {
  stdio: 'inherit',
  env: { ...process.env, OUT: out },
});
rmSync(out, { recursive: true });
if (error) throw error;
process.exit(status ?? 1);
