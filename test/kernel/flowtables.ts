import { spawnSync } from 'node:child_process';

/** Why no flowtable can be made here; undefined when it can. */
export function flowtablesUnavailable(): string | undefined {
  const flowtable = 'add flowtable ip kpt-probe f { hook ingress priority 0; }';
  const rule = 'add rule ip kpt-probe c flow add @f';
  const batch = `add table ip kpt-probe; ${flowtable}; add chain ip kpt-probe c { type filter hook forward priority 0; }; ${rule}`;
  return spawnSync('nft', ['-c', batch]).status === 0 ? undefined : 'this kernel has no flowtables';
}
